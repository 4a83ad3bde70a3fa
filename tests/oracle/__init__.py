"""An independent implementation of OTLP, used to check profcol from outside.

Nothing in this package shares code or generated tables with the server: it decodes with the protobuf classes that
OpenTelemetry publishes, so an error in one of the two shows as a difference.

    decode, expected      the recordings in tests/data/captures, and what each of them holds
    canonical, layout     one form for all encodings of the same data; counts and totals
    join                  what the join must make of it
    make                  small requests, written as what they mean
    replay, connections   sends requests to a server, byte by byte
    client                requests that a test words itself, right or wrong
    backend, backend_h2   receives what the server sends, and answers as a test wants
    outputs               what exporter `file` wrote
    server                the server as a process
    recording             makes examples/recording
    testing               runs a test file
"""
