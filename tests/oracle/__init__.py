"""An independent reading of OTLP, used to judge profcol from outside.

Nothing in this package shares code or generated tables with the server: it decodes with the
protobuf classes that OpenTelemetry publishes, so an error in one reading shows as a difference.
"""
