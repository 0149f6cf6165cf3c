{{/*
The chart has no copy of an object: it reads the files that kustomize reads (files/ links to
manifests/), changes what the values say and prints them. A change there is a change here.

muster.load: the objects of one file, as a YAML array. Arguments: [root, path under files/].
*/}}
{{- define "muster.load" -}}
{{- $root := index . 0 }}{{ $path := printf "files/%s" (index . 1) }}
{{- $text := required (printf "%s: not in the chart: package it from manifests/helm/muster" $path) ($root.Files.Get $path) }}
{{- $found := list }}
{{- range $part := regexSplit "(?m)^---$" $text -1 }}
{{- with fromYaml $part }}{{ $found = append $found . }}{{ end }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{/* muster.print: one object as a document, with the labels that all have. Arguments: root, object. */}}
{{- define "muster.print" -}}
{{- $meta := .object.metadata }}
{{- $_ := set $meta "labels" (merge (fromYaml (include "muster.labels" .root)) ($meta.labels | default dict)) }}
---
{{ toYaml .object }}
{{ end }}

{{/* muster.printall: every object of a file, as it is. Arguments: [root, path]. */}}
{{- define "muster.printall" -}}
{{- $root := index . 0 }}
{{- range $object := fromYamlArray (include "muster.load" .) }}
{{- include "muster.print" (dict "root" $root "object" $object) }}
{{- end }}
{{- end }}

{{/* muster.labels: those of Kubernetes' recommendation. Selectors have none of these but the name. */}}
{{- define "muster.labels" -}}
{{- $own := dict "app.kubernetes.io/part-of" "muster" "app.kubernetes.io/managed-by" .Release.Service }}
{{- $_ := set $own "app.kubernetes.io/instance" .Release.Name }}
{{- $_ := set $own "app.kubernetes.io/version" .Chart.AppVersion }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") | trunc 63) }}
{{- toYaml (merge $own .Values.commonLabels) }}
{{- end }}

{{/* muster.image: a reference. Arguments: an image of the values, and the tag where it has none. */}}
{{- define "muster.image" -}}
{{- $image := index . 0 }}
{{- $name := $image.repository }}
{{- with $image.registry }}{{ $name = printf "%s/%s" . $name }}{{ end }}
{{- if $image.digest }}{{ printf "%s@%s" $name $image.digest }}
{{- else }}{{ printf "%s:%s" $name ($image.tag | default (index . 1)) }}{{ end }}
{{- end }}

{{/* muster.config: text of a configuration file with values merged over it; untouched without. */}}
{{- define "muster.config" -}}
{{- $text := index . 0 }}{{ $over := index . 1 }}
{{- if $over }}{{ toYaml (mergeOverwrite (fromYaml $text) $over) }}{{ else }}{{ trimSuffix "\n" $text }}{{ end }}
{{- end }}

{{/* muster.configmap: a file of configuration as a ConfigMap. Arguments: root, name, namespace, component, key, text. */}}
{{- define "muster.configmap" -}}
{{- $meta := dict "name" .name "namespace" .namespace }}
{{- with .labels }}{{ $_ := set $meta "labels" . }}{{ end }}
{{- $object := dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" $meta "data" (dict .key (printf "%s\n" .text)) }}
{{- include "muster.print" (dict "root" .root "object" $object) }}
{{- end }}

{{/*
muster.workload: what the values of a program change in its Deployment or DaemonSet. Prints nothing.
Arguments: root, object, values, image; config (text of its ConfigMap: a change rolls the pods);
apart: the spreading of ha.
*/}}
{{- define "muster.workload" -}}
{{- $template := .object.spec.template }}{{ $spec := $template.spec }}{{ $values := .values }}
{{- $container := first $spec.containers }}
{{- $_ := set $container "image" .image }}
{{- with .pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end }}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end }}
{{- with .root.Values.imagePullSecrets }}{{ $_ := set $spec "imagePullSecrets" . }}{{ end }}
{{- with .apart }}{{ $_ := set $spec "topologySpreadConstraints" . }}{{ end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" }}
{{- with get $values $key }}{{ $_ := set $spec $key . }}{{ end }}
{{- end }}
{{- $notes := merge (dict "checksum/config" (sha256sum .config)) $values.podAnnotations .root.Values.podAnnotations }}
{{- $_ := set $template.metadata "annotations" $notes }}
{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels .root.Values.commonLabels) }}
{{- end }}

{{/* muster.replicas: of a program that may have a standby. Arguments: [root, values of the program]. */}}
{{- define "muster.replicas" -}}
{{- $root := index . 0 }}{{ $given := (index . 1).replicas }}
{{- if kindIs "invalid" $given }}{{ ternary 2 1 $root.Values.ha.enabled }}{{ else }}{{ int $given }}{{ end }}
{{- end }}

{{/* muster.apart: the spreading of manifests/overlays/ha, as a dictionary with one key; empty without ha. */}}
{{- define "muster.apart" -}}
{{- if .Values.ha.enabled }}
constraints:
{{ toYaml (index (fromYamlArray (.Files.Get "files/overlays/ha/apart.yaml")) 0).value | indent 2 }}
{{- end }}
{{- end }}

{{/* muster.serviceaccount: whether an object is to be printed, and its annotations. Arguments: object, values. */}}
{{- define "muster.serviceaccount" -}}
{{- if .values.create }}
{{- with .values.annotations }}{{ $_ := set $.object.metadata "annotations" . }}{{ end }}yes
{{- end }}
{{- end }}
