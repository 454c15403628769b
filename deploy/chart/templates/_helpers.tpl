{{- /* At most 52 characters, because Kubernetes appends a hash to the name of a StatefulSet in a label of 63. */ -}}
{{- define "tertulia.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tertulia.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tertulia.labels" -}}
{{ include "tertulia.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "tertulia.image" -}}
{{- $image := required "image.repository is required: build the image with the Containerfile, and push it to your registry." .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $image .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* Fails if values that are valid by themselves don't fit together. */ -}}
{{- define "tertulia.check" -}}
{{- $keys := .Values.secrets.keys -}}
{{- if and $keys (not .Values.secrets.existingSecret) -}}
{{- fail "secrets.keys requires secrets.existingSecret, the name of a Secret." -}}
{{- end -}}
{{- if and .Values.secrets.existingSecret (not $keys) -}}
{{- fail "secrets.existingSecret requires secrets.keys, the keys to use." -}}
{{- end -}}
{{- range $keys -}}
{{- if hasKey $.Values.settings . -}}
{{- fail (printf "%s is both in settings and in secrets.keys. Keep only one of them." .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.from) -}}
{{- fail "networkPolicy.from is required: who can connect, at least the ingress controller." -}}
{{- end -}}
{{- if eq .Values.database "postgresql" -}}
{{- if not (and (has "secret" $keys) (has "database_url" $keys)) -}}
{{- fail "PostgreSQL requires a Secret with the keys secret and database_url: set secrets.existingSecret and secrets.keys." -}}
{{- end -}}
{{- if not (or (hasPrefix "s3://" (toString .Values.settings.files_url)) .Values.persistence.existingClaim) -}}
{{- fail "On PostgreSQL, files need a bucket (settings.files_url) or a shared directory (persistence.existingClaim)." -}}
{{- end -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) (add (int .Values.drainSeconds) 15 | int) -}}
{{- fail "terminationGracePeriodSeconds must be at least drainSeconds + 15." -}}
{{- end -}}
{{- else if has "database_url" $keys -}}
{{- fail "SQLite has no database_url: set database to postgresql, or remove the key." -}}
{{- end -}}
{{- end -}}

{{- /* The pod: `template` of the StatefulSet and the Deployment. */ -}}
{{- define "tertulia.pod" -}}
{{- $postgresql := eq .Values.database "postgresql" -}}
metadata:
  labels:
    {{- include "tertulia.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  enableServiceLinks: false
  automountServiceAccountToken: false
  {{- with .Values.serviceAccountName }}
  serviceAccountName: {{ . }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  {{- if $postgresql }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "tertulia.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: tertulia
      image: {{ include "tertulia.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        - { name: TERTULIA_EXTERNAL_URL, value: {{ .Values.externalUrl | trimSuffix "/" | quote }} }
        - { name: TERTULIA_PROXY_TRUSTED, value: {{ join "," .Values.clusterNetworks | quote }} }
        - { name: TERTULIA_METRICS_ALLOWED, value: {{ join "," .Values.clusterNetworks | quote }} }
        {{- if not (hasKey .Values.settings "log_format") }}
        - { name: TERTULIA_LOG_FORMAT, value: json }
        {{- end }}
        {{- if $postgresql }}
        - { name: TERTULIA_DRAIN_SECONDS, value: {{ .Values.drainSeconds | quote }} }
        {{- end }}
        {{- range $name, $value := .Values.settings }}
        {{- /* toString would write large numbers as 1e+06, and Kubernetes would replace $(NAME). */}}
        - { name: TERTULIA_{{ upper $name }}, value: {{ ternary $value (toJson $value) (kindIs "string" $value) | replace "$(" "$$(" | quote }} }
        {{- end }}
        {{- range .Values.secrets.keys }}
        - { name: TERTULIA_{{ upper . }}_FILE, value: /secrets/{{ . }} }
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports: [{ name: http, containerPort: 9991 }]
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      # A migration can take as long as this allows: an hour.
      startupProbe:
        httpGet: { path: /health, port: http }
        periodSeconds: 2
        failureThreshold: 1800
      livenessProbe:
        httpGet: { path: /health, port: http }
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- if $postgresql }}
        httpGet: { path: /ready, port: http }
        periodSeconds: 5
        failureThreshold: 2
        {{- else }}
        # Until the organization exists, /ready returns 503. The first page must be reachable then.
        httpGet: { path: /health, port: http }
        {{- end }}
        timeoutSeconds: 5
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: tmp, mountPath: /tmp }
        {{- if .Values.secrets.existingSecret }}
        - { name: secrets, mountPath: /secrets, readOnly: true }
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- if .Values.persistence.existingClaim }}
    - { name: data, persistentVolumeClaim: { claimName: {{ .Values.persistence.existingClaim | quote }} } }
    {{- else if $postgresql }}
    # Space for files on their way to the bucket.
    - { name: data, emptyDir: {} }
    {{- end }}
    - { name: tmp, emptyDir: {} }
    {{- with .Values.secrets }}
    {{- if .existingSecret }}
    - name: secrets
      secret:
        secretName: {{ .existingSecret | quote }}
        defaultMode: 0440
        items:
          {{- range .keys }}
          - { key: {{ . }}, path: {{ . }} }
          {{- end }}
    {{- end }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
