package testpb_test

import (
	"flag"
	"os"
	"testing"

	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/internal/codec"
	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them")

func TestGeneratedCodeIsCurrent(t *testing.T) {
	request, err := plugintest.Request(
		[]string{".", "../../../../proto", "../../../../proto/third_party"}, nil, "codectest.proto")
	if err != nil {
		t.Fatal(err)
	}
	files, err := plugintest.Run(request, func(plugin *protogen.Plugin) error {
		for _, file := range plugin.Files {
			if file.Generate {
				internal_gengo.GenerateFile(plugin, file)
			}
		}
		return codec.Generate(plugin)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Fatalf("generated %d files, want codectest.pb.go and codectest_json.pb.go", len(files))
	}
	for name, want := range files {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what codectest.proto generates now: run go generate in this directory", name)
		}
	}
}
