//go:build generate

// Command print writes the third-party protos into its directory, from the descriptors that our Go dependencies embed,
// so that they always match go.mod and nothing has to be fetched. Run by `make generate`.
package main

import (
	"log"
	"os"
	"path/filepath"

	_ "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/jhump/protoreflect/v2/protoprint"
	_ "google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func main() {
	printer := protoprint.Printer{}
	for _, path := range []string{"google/api/annotations.proto", "google/api/http.proto", "buf/validate/validate.proto"} {
		fd, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			log.Fatal(err)
		}
		target := filepath.Join("proto", "third_party", path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			log.Fatal(err)
		}
		f, err := os.Create(target)
		if err != nil {
			log.Fatal(err)
		}
		if err := printer.PrintProtoFile(fd, f); err != nil {
			log.Fatal(err)
		}
		if err := f.Close(); err != nil {
			log.Fatal(err)
		}
	}
}
