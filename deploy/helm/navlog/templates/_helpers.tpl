{{- define "navlog.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}
{{- end }}

{{- define "navlog.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "navlog.labels" -}}
{{ include "navlog.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The account of a pod: dict "root" "name" "values"; empty for the default one of the namespace. */}}
{{- define "navlog.account" -}}
{{- with .values.serviceAccount }}
{{- if .create }}{{ .name | default (printf "%s-%s" (include "navlog.fullname" $.root) $.name) }}{{ else }}{{ .name }}{{ end }}
{{- end }}
{{- end }}

{{- define "navlog.image" -}}
{{- $repository := required "image.repository is the name of the image, with its registry" .Values.image.repository }}
{{- if .Values.image.digest }}{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else }}{{ printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) }}{{ end }}
{{- end }}

{{/* The configuration, which every program reads, so it must not contain secrets. */}}
{{- define "navlog.config" -}}
{{- if dig "chain" "rpc" "" .Values.config }}{{ fail "config.chain.rpc is read by every program: put the URLs of the nodes into the secret of ingest (chain-rpc)" }}{{ end }}
{{- range $path := list (list "postgres" "password") (list "postgres" "url") (list "clickhouse" "password") (list "clickhouse" "queryPassword") (list "http" "statementKey") (list "http" "proofRpc") }}
{{- if dig (index $path 0) (index $path 1) "" $.Values.config }}{{ fail (printf "config.%s.%s is a secret: put it into the secrets of the programs" (index $path 0) (index $path 1)) }}{{ end }}
{{- end }}
{{- if dig "kafka" "sasl" "password" "" .Values.config }}{{ fail "config.kafka.sasl.password is a secret: put it into the secrets of the programs" }}{{ end }}
{{- range list "mechanism" "user" }}
{{- if dig "kafka" "sasl" . "" $.Values.config }}{{ fail (printf "config.kafka.sasl.%s is set by the chart: set kafka.mechanism and kafka.users" .) }}{{ end }}
{{- end }}
{{- toYaml .Values.config }}
{{- end }}

{{/* The files of /etc/navlog: the configuration, and the mappings that its vaults name. */}}
{{- define "navlog.files" -}}
navlog.yaml: |
  {{- include "navlog.config" . | nindent 2 }}
{{- range $name, $text := .Values.mappings }}
{{ $name }}: |
  {{- $text | nindent 2 }}
{{- end }}
{{- end }}

{{/* The port on which a program listens: dict "root" "section", which is http or ops. */}}
{{- define "navlog.port" -}}
{{- $port := regexFind ":[1-9][0-9]{0,4}$" (dig .section "listen" "" .root.Values.config) | trimPrefix ":" }}
{{- required (printf "config.%s.listen must name a port: services and probes use it" .section) $port }}
{{- end }}

{{- define "navlog.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "navlog.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* What every pod has: dict "root" "name" "values". */}}
{{- define "navlog.pod" -}}
# Otherwise, for each Service whose name begins with navlog, pods get variables that begin with NAVLOG_ but are not settings.
enableServiceLinks: false
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
securityContext: {{- include "navlog.podSecurity" .root | nindent 2 }}
{{- with include "navlog.account" . }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Whether the mechanism of the Kafka login has a user and a password: navlog rejects them for the others. */}}
{{- define "navlog.kafkaPassword" -}}
{{- if has .Values.kafka.mechanism (list "PLAIN" "SCRAM-SHA-256" "SCRAM-SHA-512") }}yes{{ end }}
{{- end }}

{{/* Whether serve has a node of its own for proofs. */}}
{{- define "navlog.proves" -}}
{{- with .Values.serve }}
{{- if or (get .env "NAVLOG_HTTP_PROOF_RPC") (get .env "NAVLOG_HTTP_PROOF_RPC_FILE") (get .secretFiles "NAVLOG_HTTP_PROOF_RPC") }}yes{{ end }}
{{- end }}
{{- end }}

{{/*
The secret files of a program: dict "root" "name" "values", without settings whose key is empty. serve gets the secret key
only where partners may rotate.
*/}}
{{- define "navlog.secretFiles" -}}
{{- $files := dict }}
{{- range $setting, $key := .values.secretFiles }}
{{- if and $key (or (ne $setting "NAVLOG_KAFKA_SASL_PASSWORD") (include "navlog.kafkaPassword" $.root)) }}
{{- $files = set $files $setting $key }}
{{- end }}
{{- end }}
{{- if and (eq .name "serve") (dig "http" "partnerRotation" false .root.Values.config) }}
{{- $files = merge $files (dict "NAVLOG_SECRET_KEY" "secret-key") }}
{{- end }}
{{- toYaml $files }}
{{- end }}

{{/* Environment of a program: dict "root" "name" "values". */}}
{{- define "navlog.env" -}}
- name: NAVLOG_CONFIG
  value: /etc/navlog/navlog.yaml
{{- $user := dig .name "" .root.Values.kafka.users }}
{{- if and $user .root.Values.kafka.mechanism }}
- name: NAVLOG_KAFKA_SASL_MECHANISM
  value: {{ .root.Values.kafka.mechanism | quote }}
{{- if include "navlog.kafkaPassword" .root }}
- name: NAVLOG_KAFKA_SASL_USER
  value: {{ $user | quote }}
{{- end }}
{{- end }}
{{- with .root.Values.otel }}
{{- if and .endpoint (has $.name (list "ingest" "project" "serve" "dispatch")) }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
- name: OTEL_TRACES_SAMPLER
  value: {{ .sampler | quote }}
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .samplerArg | quote }}
{{- range $key, $value := .env }}
- name: {{ $key }}
  value: {{ $value | quote }}
{{- end }}
{{- if .headersSecret.name }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom: { secretKeyRef: { name: {{ .headersSecret.name }}, key: {{ .headersSecret.key }} } }
{{- end }}
{{- end }}
{{- end }}
{{- range $key, $value := .values.env }}
{{- if has $key (list "NAVLOG_HTTP_LISTEN" "NAVLOG_OPS_LISTEN") }}{{ fail (printf "%s.env.%s: set config.http.listen or config.ops.listen, because services and probes use the port" $.name $key) }}{{ end }}
- name: {{ $key }}
  value: {{ $value | quote }}
{{- end }}
{{- range $key, $file := include "navlog.secretFiles" . | fromYaml }}
- name: {{ $key }}_FILE
  value: /run/secrets/navlog/{{ $file }}
{{- end }}
{{- end }}

{{/* Volumes of a program: dict "root" "name" "config" "values". A volume without items would have all keys of the secret. */}}
{{- define "navlog.volumes" -}}
- name: config
  configMap: { name: {{ .config }} }
{{- with include "navlog.secretFiles" . | fromYaml }}
- name: secrets
  secret:
    secretName: {{ required "each program needs existingSecret" $.values.existingSecret }}
    defaultMode: 0440
    items:
      {{- range $file := values . | uniq | sortAlpha }}
      - { key: {{ $file }}, path: {{ $file }} }
      {{- end }}
{{- end }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Mounts of a program: dict "root" "name" "values". */}}
{{- define "navlog.mounts" -}}
- { name: config, mountPath: /etc/navlog, readOnly: true }
{{- if include "navlog.secretFiles" . | fromYaml }}
- { name: secrets, mountPath: /run/secrets/navlog, readOnly: true }
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
