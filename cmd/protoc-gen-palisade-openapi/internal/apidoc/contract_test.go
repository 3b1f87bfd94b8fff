package apidoc_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

var anyVariable = regexp.MustCompile(`\{[^}]*\}`)

// byPath finds the operations of a document by method and path, without the names of variables.
func byPath(doc *openapi3.T) map[string]*openapi3.Operation {
	found := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for verb, operation := range item.Operations() {
			found[verb+" "+anyVariable.ReplaceAllString(path, "{}")] = operation
		}
	}
	return found
}

// TestInputsOfTheContract checks that the document has all documented inputs of the operations that are served:
// parameters, and members of bodies. The list is from the documents of the contract; the second column is the path.
func TestInputsOfTheContract(t *testing.T) {
	text, err := os.ReadFile("testdata/input_fields.tsv")
	if err != nil {
		t.Fatal(err)
	}
	operations, compared := byPath(ourDocument(t)), 0
	for line := range strings.Lines(string(text)) {
		row := strings.Split(strings.TrimSpace(line), "\t")
		operation := operations[row[0]+" "+row[1]]
		if operation == nil {
			continue // not served yet
		}
		compared++
		if !takes(operation, row[2]) {
			t.Errorf("%s: no input %s", operation.OperationID, row[2])
		}
	}
	if compared < 900 {
		t.Errorf("only %d inputs were compared", compared)
	}
}

// takes reports whether an operation has an input: a parameter, or a member of its body, with dots for nested ones.
func takes(operation *openapi3.Operation, name string) bool {
	for _, in := range []string{openapi3.ParameterInQuery, openapi3.ParameterInPath} {
		if operation.Parameters.GetByInAndName(in, name) != nil {
			return true
		}
	}
	if operation.RequestBody == nil {
		return false
	}
	for _, content := range operation.RequestBody.Value.Content {
		if hasMember(content.Schema, strings.Split(name, ".")) {
			return true
		}
	}
	return false
}

func hasMember(ref *openapi3.SchemaRef, path []string) bool {
	if ref == nil || ref.Value == nil {
		return false
	}
	schema := ref.Value
	switch {
	case len(path) == 0:
		return true
	case schema.Items != nil:
		return hasMember(schema.Items, path)
	case len(schema.AllOf) == 1:
		return hasMember(schema.AllOf[0], path)
	case schema.AdditionalProperties.Schema != nil || schema.AdditionalProperties.Has != nil && *schema.AdditionalProperties.Has:
		return true // a map, or any object
	}
	return schema.Properties[path[0]] != nil && hasMember(schema.Properties[path[0]], path[1:])
}

// methods lists all RPCs that are linked in.
func methods() (list []protoreflect.MethodDescriptor) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				if strings.HasPrefix(string(file.Package()), "palisade.") {
					list = append(list, file.Services().Get(i).Methods().Get(j))
				}
			}
		}
		return true
	})
	return list
}

// TestDocumentHasTheFieldsOfRequests compares the document with the descriptors: each field of a request is a parameter
// or a member of the body, and ids in paths are strings in the format int64.
func TestDocumentHasTheFieldsOfRequests(t *testing.T) {
	operations, ids := byPath(ourDocument(t)), 0
	for _, method := range methods() {
		rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
		if rule == nil {
			continue // an upload, or gRPC only
		}
		verb, path := verbAndPath(rule)
		operation := operations[verb+" "+anyVariable.ReplaceAllString(path, "{}")]
		if operation == nil {
			t.Errorf("%s is not in the document", method.FullName())
			continue
		}
		fields := method.Input().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			inPath := regexp.MustCompile(`\{` + string(field.Name()) + `[=}]`).MatchString(path)
			if !inPath && !takes(operation, field.JSONName()) && !hasPrefix(operation, field.JSONName()+".") {
				t.Errorf("%s: no input %s", method.FullName(), field.Name())
			}
			if !inPath || field.Kind() != protoreflect.Int64Kind {
				continue
			}
			ids++
			for _, parameter := range operation.Parameters {
				schema := parameter.Value.Schema.Value
				if parameter.Value.Name == field.JSONName() && parameter.Value.In == openapi3.ParameterInPath &&
					(!schema.Type.Is("string") || schema.Format != "int64") {
					t.Errorf("%s: %s is %v %s in the path", method.FullName(), field.JSONName(), schema.Type, schema.Format)
				}
			}
		}
	}
	if ids < 150 {
		t.Errorf("only %d ids in paths were compared", ids)
	}
}

func hasPrefix(operation *openapi3.Operation, prefix string) bool {
	return slices.ContainsFunc(operation.Parameters, func(p *openapi3.ParameterRef) bool { return strings.HasPrefix(p.Value.Name, prefix) })
}

func verbAndPath(rule *annotations.HttpRule) (verb, path string) {
	switch pattern := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return "GET", pattern.Get
	case *annotations.HttpRule_Put:
		return "PUT", pattern.Put
	case *annotations.HttpRule_Post:
		return "POST", pattern.Post
	case *annotations.HttpRule_Patch:
		return "PATCH", pattern.Patch
	case *annotations.HttpRule_Delete:
		return "DELETE", pattern.Delete
	}
	return "", ""
}

// pageSizes are the names of page sizes in requests.
var pageSizes = []string{"limit", "page_size", "pageSize", "optionalLimit"}

// TestDefaults checks that the defaults of page sizes and issue types are declared.
func TestDefaults(t *testing.T) {
	doc := ourDocument(t)
	sizes := 0
	for _, item := range doc.Paths.Map() {
		for verb, operation := range item.Operations() {
			declared := func(name string, schema *openapi3.Schema) {
				if slices.Contains(pageSizes, name) && operation.OperationID != "BulkTriage" && operation.OperationID != "ExportIssues" { // depends on issue_ids, and is ignored
					if sizes++; schema.Default == nil {
						t.Errorf("%s %s: the default of %s is not declared", verb, operation.OperationID, name)
					}
				}
			}
			for _, parameter := range operation.Parameters {
				declared(parameter.Value.Name[strings.LastIndex(parameter.Value.Name, ".")+1:], parameter.Value.Schema.Value)
			}
			if operation.RequestBody == nil || operation.RequestBody.Value.Content["application/json"] == nil {
				continue
			}
			for name, property := range operation.RequestBody.Value.Content["application/json"].Schema.Value.Properties {
				declared(name, property.Value)
			}
		}
	}
	if sizes < 30 {
		t.Errorf("only %d page sizes", sizes)
	}
	findings := doc.Paths.Value("/api/v1/deployments/{deploymentSlug}/findings").Get
	for name, want := range map[string]string{"issue_type": "sast", "page_size": "100"} {
		schema := findings.Parameters.GetByInAndName("query", name).Schema.Value
		if got := strings.Trim(strings.TrimSpace(sprint(schema.Default)), "[]"); got != want {
			t.Errorf("the default of %s is %q, want %q", name, got, want)
		}
	}
}
