// What two readers see in pprof files: the decoder of Pyroscope's server, and the library behind `go tool pprof`. Prints a JSON
// document for each file: the samples and the sum of their values, or the error, of each reader.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"

	"github.com/google/pprof/profile"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
)

type seen struct {
	Samples int    `json:"samples"`
	Total   int64  `json:"total"`
	Error   string `json:"error,omitempty"`
}

func failed(err error) seen { return seen{Error: err.Error()} }

func unzip(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

func pyroscope(data []byte) seen {
	var out seen
	var p googlev1.Profile
	plain, err := unzip(data)
	if err != nil {
		return failed(err)
	}
	if err := p.UnmarshalVT(plain); err != nil {
		return failed(err)
	}
	for _, sample := range p.Sample {
		out.Samples++
		for _, value := range sample.Value {
			out.Total += value
		}
	}
	return out
}

// Parse checks all references, too.
func pprof(data []byte) seen {
	var out seen
	p, err := profile.ParseData(data)
	if err != nil {
		return failed(err)
	}
	if err := p.CheckValid(); err != nil {
		return failed(err)
	}
	for _, sample := range p.Sample {
		out.Samples++
		for _, value := range sample.Value {
			out.Total += value
		}
	}
	return out
}

func main() {
	encoder := json.NewEncoder(os.Stdout)
	for _, name := range os.Args[1:] {
		data, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		encoder.Encode(map[string]any{"file": name, "pyroscope": pyroscope(data), "pprof": pprof(data)})
	}
}
