// Command protoc-gen-go-json is a protoc plugin that writes, for every message, a method AppendJSON which
// encodes the message as the API's JSON without reflection. See package codec for the form of that JSON.
//
// It is run by buf (see buf.gen.yaml) after protoc-gen-go, into the same directory:
//
//   - local: bin/tools/protoc-gen-go-json
//     out: gen
//     opt: paths=source_relative
package main

import (
	"google.golang.org/protobuf/compiler/protogen"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/internal/codec"
)

func main() {
	protogen.Options{}.Run(codec.Generate)
}
