// Package plugintest runs our protoc plugins in memory for tests: it compiles protos like buf and passes the same
// request to the plugin.
package plugintest

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// genPrefix is the go_package_prefix of buf.gen.yaml.
const genPrefix = "github.com/palisade/palisade/gen/"

// Request compiles files from the import paths or from sources (which may be nil), and returns the request that asks a
// plugin to generate them. Files of our proto module get the Go package that buf sets.
func Request(importPaths []string, sources map[string]string, files ...string) (*pluginpb.CodeGeneratorRequest, error) {
	resolvers := protocompile.CompositeResolver{
		&protocompile.SourceResolver{ImportPaths: importPaths},
		&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)},
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(resolvers),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		return nil, fmt.Errorf("compile %v: %w", files, err)
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files}
	seen := make(map[string]bool)
	for _, file := range compiled {
		request.ProtoFile = appendFile(request.ProtoFile, seen, file)
	}
	parameters := []string{"paths=source_relative"}
	for name := range seen {
		if strings.HasPrefix(name, "palisade/") {
			parameters = append(parameters, "M"+name+"="+genPrefix+path.Dir(name))
		}
	}
	slices.Sort(parameters)
	request.Parameter = proto.String(strings.Join(parameters, ","))
	return overTheWire(request)
}

// appendFile appends a file after its imports.
func appendFile(
	files []*descriptorpb.FileDescriptorProto, seen map[string]bool, file protoreflect.FileDescriptor,
) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return files
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		files = appendFile(files, seen, imports.Get(i).FileDescriptor)
	}
	return append(files, protodesc.ToFileDescriptorProto(file))
}

// overTheWire converts the request to what a plugin receives: options as the plugin's own types, or as unknown fields.
func overTheWire(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorRequest, error) {
	encoded, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	decoded := new(pluginpb.CodeGeneratorRequest)
	return decoded, proto.Unmarshal(encoded, decoded)
}

// Run returns the files that a plugin generates, by name.
func Run(request *pluginpb.CodeGeneratorRequest, generate func(*protogen.Plugin) error) (map[string]string, error) {
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return nil, err
	}
	if err := generate(plugin); err != nil {
		return nil, err
	}
	response := plugin.Response()
	if response.Error != nil {
		return nil, fmt.Errorf("the plugin answered: %s", response.GetError())
	}
	files := make(map[string]string)
	for _, file := range response.GetFile() {
		files[file.GetName()] = file.GetContent()
	}
	return files, nil
}
