{{/* Variables of containers. */}}

{{- define "unbounded.hostIP" -}}
- { name: HOST_IP, valueFrom: { fieldRef: { fieldPath: status.hostIP } } }
{{- end }}

{{/* The API server by an address of the hosts' network instead of the Service's. */}}
{{- define "unbounded.apiServer" -}}
{{- with (include "unbounded.global" . | fromYaml).apiServer }}
{{- if .host }}
- { name: KUBERNETES_SERVICE_HOST, value: {{ .host | quote }} }
- { name: KUBERNETES_SERVICE_PORT, value: {{ .port | quote }} }
{{- end }}
{{- end }}
{{- end }}

{{/* The variables of the values: those that the chart sets stand before them, and Kubernetes would let later ones win. */}}
{{- define "unbounded.extraEnv" -}}
{{- $set := list "NODE_NAME" "POD_NAME" "POD_NAMESPACE" "HOST_IP" "KUBERNETES_SERVICE_HOST" "KUBERNETES_SERVICE_PORT" "CA_BUNDLE_DIGEST" -}}
{{- if include "unbounded.caBundleOf" . }}{{ $set = append $set "NODE_EXTRA_CA_CERTS" }}{{ end -}}
{{- range .Values.extraEnv }}
{{- if has .name $set }}
{{- fail (printf "%s.extraEnv: %s: must be another variable: the chart sets this one" $.Chart.Name .name) }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* The same of programs that trace (libs/host). A variable of the program's own values counts, not the one of all programs. */}}
{{- define "unbounded.env" -}}
{{- $name := "OTEL_EXPORTER_OTLP_ENDPOINT" -}}
{{- $hasOwn := false -}}
{{- range .Values.extraEnv }}{{ if eq .name $name }}{{ $hasOwn = true }}{{ end }}{{ end -}}
{{- $endpoint := ((include "unbounded.global" . | fromYaml).tracing).endpoint -}}
{{- if and $endpoint (not $hasOwn) }}
- { name: {{ $name }}, value: {{ $endpoint | quote }} }
{{- end }}
{{- with include "unbounded.extraEnv" . }}
{{ . }}
{{- end }}
{{- end }}
