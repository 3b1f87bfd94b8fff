package apidoc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/jsonappend"
	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest"
	_ "github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest/testpb"
	_ "github.com/palisade/palisade/gen/palisade/deployments/v1"
	_ "github.com/palisade/palisade/gen/palisade/findings/v1"
	_ "github.com/palisade/palisade/gen/palisade/platform/v1"
	_ "github.com/palisade/palisade/gen/palisade/projects/v1"
	_ "github.com/palisade/palisade/gen/palisade/scans/v1"
)

// TestDocumentIsTrueToTheWire encodes random responses of every operation with the codec that the gateway
// uses, and checks that the document describes each of their members.
func TestDocumentIsTrueToTheWire(t *testing.T) {
	doc := document(t, nil, ourProtos(t)...)
	closeSchemas(doc)
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			t.Run(operation.OperationID, func(t *testing.T) {
				for code, response := range operation.Responses.Map() {
					if strings.HasPrefix(code, "2") {
						checkResponse(t, response.Value.Content.Get("application/json").Schema)
					}
				}
			})
		}
	}
}

// TestEveryKindIsTrueToTheWire does the same for the messages that have every kind of field and every option.
func TestEveryKindIsTrueToTheWire(t *testing.T) {
	var service strings.Builder
	messages := []string{"Optionals", "Lists", "Maps", "WellKnown", "Choice", "Tree", "Numbers", "Unset", "Animal", "Names"}
	for i, name := range messages {
		fmt.Fprintf(&service, `rpc Get%s(Empty) returns (palisade.codectest.v1.%s) { option (google.api.http) = {get: "/%d"}; %s }`,
			name, name, i, rulePublic)
	}
	sources := sample(service.String(), "")
	sources[sourceFile] = strings.Replace(sources[sourceFile], "import", `import "codectest.proto"; import`, 1)
	doc := document(t, sources, sourceFile)
	closeSchemas(doc)
	for _, name := range messages {
		t.Run(name, func(t *testing.T) {
			checkResponse(t, &openapi3.SchemaRef{
				Ref:   "#/components/schemas/codectest.v1." + name,
				Value: doc.Components.Schemas["codectest.v1."+name].Value,
			})
		})
	}
}

// closeSchemas forbids members that the document does not name.
func closeSchemas(doc *openapi3.T) {
	no := false
	for _, schema := range doc.Components.Schemas {
		if schema.Value.Type.Is("object") {
			schema.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &no}
		}
	}
}

func checkResponse(t *testing.T, schema *openapi3.SchemaRef) {
	name := protoreflect.FullName("palisade." + strings.TrimPrefix(schema.Ref, "#/components/schemas/"))
	messageType, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		t.Fatalf("%s: import its package in wire_test.go: %v", name, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		message := messageType.New()
		plugintest.Filler{DeclaredEnums: true}.Fill(t, message, 3)
		encoded := message.Interface().(jsonappend.Appender).AppendJSON(nil)
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.UseNumber()
		var tree any
		if err := decoder.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		if err := schema.Value.VisitJSON(tree, openapi3.VisitAsResponse()); err != nil {
			t.Fatalf("%v\n%s", err, encoded)
		}
	})
}
