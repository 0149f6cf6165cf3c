{{/* What follows from the choice of scheduler and certificates. */}}

{{- define "muster.second" -}}{{ if eq .Values.scheduler.mode "second" }}yes{{ end }}{{- end }}

{{- define "muster.appimage" -}}{{ include "muster.image" (list .Values.image .Chart.AppVersion) }}{{- end }}

{{/* The version of kube-scheduler that fits the API server: its own. */}}
{{- define "muster.schedulerimage" -}}
{{- $version := regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version }}
{{- include "muster.image" (list .Values.scheduler.image $version) }}
{{- end }}

{{/* The extender's Service address, empty for one that the API server chooses. */}}
{{- define "muster.address" -}}
{{- if .Values.extender.service.clusterIP }}{{ .Values.extender.service.clusterIP }}
{{- else if not (include "muster.second" .) }}10.96.0.80{{ end }}
{{- end }}

{{- define "muster.extendertls" -}}
{{- if eq .Values.certificates.source "secrets" }}{{ .Values.certificates.secrets.extender }}{{ else }}muster-extender-tls{{ end }}
{{- end }}

{{- define "muster.schedulertls" -}}
{{- if eq .Values.certificates.source "secrets" }}{{ .Values.certificates.secrets.scheduler }}{{ else }}muster-scheduler-client{{ end }}
{{- end }}

{{/* Text of the extender's configuration. */}}
{{- define "muster.extenderconfig" -}}
{{- $file := ternary "files/components/second-scheduler/extender-config.yaml" "files/base/extender-config.yaml" (eq .Values.scheduler.mode "second") }}
{{- include "muster.config" (list (.Files.Get $file) .Values.extender.config) }}
{{- end }}

{{/* Text of the webhook's configuration. cert-manager's certificates are files, and caBundle is cainjector's. */}}
{{- define "muster.webhookconfig" -}}
{{- $file := ternary "files/components/second-scheduler/webhook-config.yaml" "files/base/webhook-config.yaml" (eq .Values.scheduler.mode "second") }}
{{- $text := .Files.Get $file }}
{{- if eq .Values.certificates.source "cert-manager" }}
{{- $managed := fromYaml (.Files.Get "files/components/cert-manager/webhook-config.yaml") }}
{{- $config := fromYaml $text }}
{{- $_ := set $config "certificates" $managed.certificates }}
{{- $_ := unset $config "registration" }}
{{- $text = toYaml $config }}
{{- end }}
{{- include "muster.config" (list $text .Values.webhook.config) }}
{{- end }}
