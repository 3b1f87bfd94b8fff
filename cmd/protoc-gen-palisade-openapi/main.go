// Command protoc-gen-palisade-openapi is a protoc plugin that writes the OpenAPI description of the HTTP API:
// one document for all services, and a Go file that embeds it. See package apidoc for what the document says.
//
// It is run by buf (see buf.gen.yaml) once for all files:
//
//   - local: bin/tools/protoc-gen-palisade-openapi
//     out: gen/openapi
//     strategy: all
package main

import (
	"google.golang.org/protobuf/compiler/protogen"

	"github.com/palisade/palisade/cmd/protoc-gen-palisade-openapi/internal/apidoc"
)

func main() {
	protogen.Options{}.Run(apidoc.Generate)
}
