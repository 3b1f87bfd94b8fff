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
	_ "github.com/palisade/palisade/gen/palisade/ai/v1"
	_ "github.com/palisade/palisade/gen/palisade/deployments/v1"
	_ "github.com/palisade/palisade/gen/palisade/findings/v1"
	_ "github.com/palisade/palisade/gen/palisade/identity/v1"
	_ "github.com/palisade/palisade/gen/palisade/notifications/v1"
	_ "github.com/palisade/palisade/gen/palisade/platform/v1"
	_ "github.com/palisade/palisade/gen/palisade/policies/v1"
	_ "github.com/palisade/palisade/gen/palisade/projects/v1"
	_ "github.com/palisade/palisade/gen/palisade/reporting/v1"
	_ "github.com/palisade/palisade/gen/palisade/rules/v1"
	_ "github.com/palisade/palisade/gen/palisade/scans/v1"
	_ "github.com/palisade/palisade/gen/palisade/scm/v1"
	_ "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	_ "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	_ "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// TestDocumentIsTrueToTheWire encodes random responses of every operation with the gateway's codec, and checks that the
// document describes all their members.
func TestDocumentIsTrueToTheWire(t *testing.T) {
	doc := ourDocument(t)
	closeSchemas(doc)
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			t.Run(operation.OperationID, func(t *testing.T) {
				for code, response := range operation.Responses.Map() {
					switch content := response.Value.Content.Get("application/json"); {
					case code == "204" && content != nil:
						t.Error("204 has no body")
					case strings.HasPrefix(code, "2") && code != "204":
						checkResponse(t, content.Schema)
					}
				}
			})
		}
	}
}

// TestEveryKindIsTrueToTheWire does the same for the messages with every kind of field and every option.
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

// closeSchemas forbids members that the document does not name. It removes limits and required members of requests,
// because random responses violate them.
func closeSchemas(doc *openapi3.T) {
	no := false
	requests := requestSchemas(doc)
	for name, schema := range doc.Components.Schemas {
		if schema.Value.Type.Is("object") {
			schema.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &no}
		}
		if requests[name] {
			schema.Value.Required = nil
			dropWords(name, schema.Value)
		}
		for _, property := range schema.Value.Properties {
			dropLimits(property)
		}
	}
}

// dropWords removes the allowed texts of requests; the words of enums stay.
func dropWords(name string, schema *openapi3.Schema) {
	message, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("palisade." + name))
	if err != nil {
		return
	}
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		property := schema.Properties[fields.Get(i).JSONName()]
		if fields.Get(i).Kind() != protoreflect.StringKind || property == nil {
			continue
		}
		property.Value.Enum = nil
		if property.Value.Items != nil {
			property.Value.Items.Value.Enum = nil
		}
	}
}

func dropLimits(schema *openapi3.SchemaRef) {
	if schema == nil || schema.Ref != "" {
		return
	}
	v := schema.Value
	v.MinLength, v.MaxLength, v.Pattern, v.Min, v.Max = 0, nil, "", nil, nil
	v.MinItems, v.MaxItems, v.MinProps, v.MaxProps, v.UniqueItems = 0, nil, 0, nil, false
	dropLimits(v.Items)
	dropLimits(v.AdditionalProperties.Schema)
	for _, part := range v.AllOf {
		dropLimits(part)
	}
}

// requestSchemas returns the names of the components in request bodies.
func requestSchemas(doc *openapi3.T) map[string]bool {
	found := map[string]bool{}
	var walk func(schema *openapi3.SchemaRef)
	walk = func(schema *openapi3.SchemaRef) {
		if schema == nil || schema.Value == nil {
			return
		}
		if name := strings.TrimPrefix(schema.Ref, "#/components/schemas/"); name != "" {
			if found[name] {
				return
			}
			found[name] = true
		}
		walk(schema.Value.Items)
		walk(schema.Value.AdditionalProperties.Schema)
		for _, part := range schema.Value.AllOf {
			walk(part)
		}
		for _, property := range schema.Value.Properties {
			walk(property)
		}
	}
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			if operation.RequestBody == nil {
				continue
			}
			for _, content := range operation.RequestBody.Value.Content {
				walk(content.Schema)
			}
		}
	}
	return found
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
