{{/* The image of relays that a Mesh asks for is that of all our programs, unless relayImage says otherwise. */}}
{{- define "unbounded.relayReference" -}}
{{ include "unbounded.reference" (list . .Values.relayImage) }}
{{- end }}

{{/* Secrets that pods of relays may mount, as items of a CEL list. */}}
{{- define "unbounded.relaySecrets" -}}
'relay-links', 'relay-tls', 'relay-static-key'
{{- end }}
