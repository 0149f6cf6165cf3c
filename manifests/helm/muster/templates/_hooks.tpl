{{/*
Jobs that Helm runs before and after, each with a ServiceAccount of its own that goes with it.

muster.hookrights: that ServiceAccount and what it may. Arguments: root, name, hook (the events),
rules (in muster-system), clusterRules (everywhere, may be empty).
*/}}
{{- define "muster.hookrights" -}}
{{- $notes := dict "helm.sh/hook" .hook "helm.sh/hook-weight" "-10" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" }}
{{- include "muster.rights" (merge (dict "annotations" $notes) .) }}
{{- end }}

{{/* muster.rights: a ServiceAccount, its Role and its ClusterRole. Arguments as above; annotations. */}}
{{- define "muster.rights" -}}
{{- $rbac := "rbac.authorization.k8s.io" }}{{ $here := dict "name" .name "namespace" "muster-system" }}
{{- $everywhere := dict "name" .name }}
{{- with .annotations }}{{ $_ := set $here "annotations" . }}{{ $_ := set $everywhere "annotations" . }}{{ end }}
{{- $subjects := list (dict "kind" "ServiceAccount" "name" .name "namespace" "muster-system") }}
{{- $objects := list (dict "apiVersion" "v1" "kind" "ServiceAccount" "metadata" $here) }}
{{- $objects = append $objects (dict "apiVersion" (printf "%s/v1" $rbac) "kind" "Role" "metadata" $here "rules" .rules) }}
{{- $objects = append $objects (dict "apiVersion" (printf "%s/v1" $rbac) "kind" "RoleBinding" "metadata" $here
      "roleRef" (dict "apiGroup" $rbac "kind" "Role" "name" .name) "subjects" $subjects) }}
{{- if .clusterRules }}
{{- $objects = append $objects (dict "apiVersion" (printf "%s/v1" $rbac) "kind" "ClusterRole" "metadata" $everywhere "rules" .clusterRules) }}
{{- $objects = append $objects (dict "apiVersion" (printf "%s/v1" $rbac) "kind" "ClusterRoleBinding" "metadata" $everywhere
      "roleRef" (dict "apiGroup" $rbac "kind" "ClusterRole" "name" .name) "subjects" $subjects) }}
{{- end }}
{{- range $object := $objects }}
{{- include "muster.print" (dict "root" $.root "object" $object) }}
{{- end }}
{{- end }}

{{/* muster.hookjob: one run of the image. Arguments: root, name, hook, args, seconds (its limit). */}}
{{- define "muster.hookjob" -}}
{{- $notes := dict "helm.sh/hook" .hook "helm.sh/hook-weight" "0" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" "helm.sh/hook-output-log-policy" "hook-failed" }}
{{- $spec := dict "backoffLimit" 2 "activeDeadlineSeconds" .seconds "template" (fromYaml (include "muster.jobpod" .)) }}
{{- $object := dict "apiVersion" "batch/v1" "kind" "Job" "metadata" (dict "name" .name "namespace" "muster-system" "annotations" $notes) "spec" $spec }}
{{- include "muster.print" (dict "root" .root "object" $object) }}
{{- end }}

{{/* muster.jobpod: the template of a pod that runs one command to its end. Arguments: root, name, args. */}}
{{- define "muster.jobpod" -}}
metadata:
  labels:
    app.kubernetes.io/name: muster-jobs
    app.kubernetes.io/component: {{ .name }}
    {{- with .root.Values.commonLabels }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ .name }}
  restartPolicy: Never
  priorityClassName: system-cluster-critical
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  tolerations:
    - {key: node-role.kubernetes.io/control-plane, effect: NoSchedule}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.hooks.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: muster
      image: {{ include "muster.appimage" .root }}
      {{- with .root.Values.image.pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      args: {{ toYaml .args | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      resources: {{ toYaml .root.Values.hooks.resources | nindent 8 }}
{{- end }}

{{/* What making certificates needs. `create` has no name to be limited by. */}}
{{- define "muster.certificaterules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [muster-extender-tls, muster-scheduler-client, muster-webhook-callers]
  verbs: [get, patch]
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: [muster-extender, muster-scheduler]
  verbs: [patch]
{{- end }}

{{- define "muster.certificateargs" -}}
- certificates
- --in-cluster
- --days={{ int .Values.certificates.own.days }}
{{- if include "muster.second" . }}
- --renew-before-days={{ int .Values.certificates.own.renewBeforeDays }}
{{- end }}
{{- with include "muster.address" . }}
- --address={{ . }}
{{- end }}
{{- end }}
