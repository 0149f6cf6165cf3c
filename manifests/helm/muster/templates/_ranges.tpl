{{/*
muster.rangecheck: the extender's address lies in a Service range of the cluster. Ranges are objects
from Kubernetes 1.33 on; before, and for IPv6, the API server says it when the Service is created.
*/}}
{{- define "muster.rangecheck" -}}
{{- $address := include "muster.address" . }}
{{- if regexMatch "^[0-9.]+$" $address }}
{{- $ranges := list }}{{ $fits := false }}
{{- range $found := dig "items" list (lookup "networking.k8s.io/v1" "ServiceCIDR" "" "" | default dict) }}
{{- range $cidr := $found.spec.cidrs }}
{{- if not (contains ":" $cidr) }}
{{- $ranges = append $ranges $cidr }}
{{- $parts := splitList "/" $cidr }}
{{- $size := 1 }}
{{- range until (int (sub 32 (int (last $parts)))) }}{{ $size = mul $size 2 }}{{ end }}
{{- $mine := div (int64 (include "muster.number" $address)) $size }}
{{- if eq $mine (div (int64 (include "muster.number" (first $parts))) $size) }}{{ $fits = true }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $ranges (not $fits) }}
{{- fail (printf "extender.service.clusterIP %s: is in none of the cluster's Service ranges, %s: choose a free address there" $address (join ", " $ranges)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* muster.number: an IPv4 address as one number. */}}
{{- define "muster.number" -}}
{{- $sum := 0 }}
{{- range $part := splitList "." . }}{{ $sum = add (mul $sum 256) (int $part) }}{{ end }}{{ $sum }}
{{- end }}
