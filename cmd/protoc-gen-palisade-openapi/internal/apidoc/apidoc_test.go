package apidoc_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest"
	"github.com/palisade/palisade/cmd/protoc-gen-palisade-openapi/internal/apidoc"
)

const (
	protoDir      = "../../../../proto"
	thirdPartyDir = protoDir + "/third_party"
	testProtoDir  = "../../../protoc-gen-go-json/plugintest/testpb"
)

// ourProtos returns all protos of Palisade, by import path.
func ourProtos() ([]string, error) {
	var files []string
	err := fs.WalkDir(os.DirFS(protoDir), "palisade", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".proto" {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// ourDocument returns the document of all protos of Palisade. The tests share it, because generating it takes seconds.
func ourDocument(t *testing.T) *openapi3.T {
	t.Helper()
	encoded, err := ourText()
	if err != nil {
		t.Fatal(err)
	}
	return load(t, encoded)
}

var ourText = sync.OnceValues(generateOurs)

func generateOurs() (string, error) {
	files, err := ourProtos()
	if err != nil {
		return "", err
	}
	return generate(nil, files...)
}

// document generates the document for some files and loads it, which resolves all references.
func document(t *testing.T, sources map[string]string, files ...string) *openapi3.T {
	t.Helper()
	encoded, err := generate(sources, files...)
	if err != nil {
		t.Fatal(err)
	}
	return load(t, encoded)
}

func load(t *testing.T, encoded string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(encoded))
	if err != nil {
		t.Fatalf("the document does not load: %v", err)
	}
	return doc
}

func generate(sources map[string]string, files ...string) (string, error) {
	request, err := plugintest.Request([]string{protoDir, thirdPartyDir, testProtoDir}, sources, files...)
	if err != nil {
		return "", err
	}
	generated, err := plugintest.Run(request, apidoc.Generate)
	return generated["openapi.json"], err
}

func TestDocumentIsValid(t *testing.T) {
	doc := ourDocument(t)
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	if doc.Info.Title != "Palisade API" || doc.Info.Version != "2.0.0.alpha" {
		t.Errorf("info is %q %q", doc.Info.Title, doc.Info.Version)
	}
	for _, name := range []string{"PlatformWebToken", "PlatformJWT"} {
		scheme := doc.Components.SecuritySchemes[name]
		if scheme == nil || scheme.Value.Type != "http" || scheme.Value.Scheme != "bearer" {
			t.Errorf("security scheme %s is %+v", name, scheme)
		}
	}
}

func TestDocumentIsReproducible(t *testing.T) {
	first, err := ourText()
	if err != nil {
		t.Fatal(err)
	}
	again, err := generateOurs() // the order of maps differs each time, and a document has thousands of them
	if err != nil {
		t.Fatal(err)
	}
	if again != first {
		t.Fatal("two runs gave different documents")
	}
}

// TestEveryOperation checks rules that apply to all operations.
func TestEveryOperation(t *testing.T) {
	doc := ourDocument(t)
	count := 0
	for path, item := range doc.Paths.Map() {
		for verb, operation := range item.Operations() {
			count++
			name := verb + " " + path
			maturity, _ := operation.Extensions["x-maturity"].(string)
			if !slices.Contains([]string{"Experimental", "Beta", "Stable"}, maturity) {
				t.Errorf("%s: x-maturity is %q", name, maturity)
			}
			if operation.Security == nil {
				t.Errorf("%s: security is not said", name)
			}
			if operation.Summary == "" || len(operation.Tags) != 1 || doc.Tags.Get(operation.Tags[0]) == nil {
				t.Errorf("%s: no summary or tag", name)
			}
			if operation.Responses.Status(500) == nil || operation.Responses.Default() != nil {
				t.Errorf("%s: errors are not described", name)
			}
			for _, parameter := range operation.Parameters {
				if parameter.Value.Description == "" || parameter.Value.Schema == nil {
					t.Errorf("%s: parameter %s has no description or schema", name, parameter.Value.Name)
				}
			}
		}
	}
	if count == 0 {
		t.Error("the document has no operations")
	}
}

func TestListFindings(t *testing.T) {
	doc := ourDocument(t)
	operation := doc.Paths.Value("/api/v1/deployments/{deploymentSlug}/findings").Get
	if operation == nil || operation.OperationID != "ListFindings" {
		t.Fatalf("the operation is %+v", operation)
	}
	size := operation.Parameters.GetByInAndName("query", "page_size").Schema.Value
	if !size.Type.Is("integer") || *size.Min != 100 || *size.Max != 3000 {
		t.Errorf("page_size is %+v, want an integer from 100 to 3000", size)
	}
	kind := operation.Parameters.GetByInAndName("query", "issue_type").Schema.Value
	if !kind.Type.Is("array") || !slices.Equal(kind.Items.Value.Enum, []any{"sast", "sca", "ai_sast"}) {
		t.Errorf("issue_type is %+v", kind)
	}
	severities := operation.Parameters.GetByInAndName("query", "severities").Schema.Value
	if !severities.Type.Is("array") || len(severities.Items.Value.Enum) != 4 {
		t.Errorf("severities is %+v, want an array of four words", severities)
	}
	finding := doc.Components.Schemas["findings.v1.Finding"].Value
	if finding.Properties["issue_type"] != nil {
		t.Error("the field that holds the variant is shown")
	}
	if id := finding.Properties["id"].Value; !id.Type.Is("integer") || id.Format != "int64" {
		t.Errorf("id is %+v, want an integer", id)
	}
	if !finding.Properties["triaged_at"].Value.Nullable {
		t.Error("triaged_at is not nullable")
	}
}

func TestUploadReport(t *testing.T) {
	doc := ourDocument(t)
	operation := doc.Paths.Value("/api/v1/deployments/{deploymentSlug}/reports").Post
	for _, name := range []string{"project", "ref", "commit", "category", "product"} {
		if operation.Parameters.GetByInAndName("query", name) == nil {
			t.Errorf("no query parameter %s", name)
		}
	}
	if operation.Parameters.GetByInAndName("header", "Content-Encoding") == nil {
		t.Error("no header Content-Encoding")
	}
	for _, media := range []string{"application/sarif+json", "application/json", "application/gzip"} {
		if content := operation.RequestBody.Value.Content[media]; content == nil || content.Schema.Value.Format != "binary" {
			t.Errorf("no binary body %s", media)
		}
	}
}

func TestReceiveWebhook(t *testing.T) {
	doc := ourDocument(t)
	operation := doc.Paths.Value("/api/scm/webhooks/{webhookKey}").Post
	for _, parameter := range operation.Parameters {
		if parameter.Value.In == "query" {
			t.Errorf("the header of %s is a query parameter", parameter.Value.Name)
		}
	}
	if operation.Parameters.GetByInAndName("header", "X-Hub-Signature-256") == nil {
		t.Error("no header X-Hub-Signature-256")
	}
	if len(operation.RequestBody.Value.Content) != 1 || operation.RequestBody.Value.Content["application/json"] == nil {
		t.Errorf("body %v", operation.RequestBody.Value.Content)
	}
}

func TestPublicOperation(t *testing.T) {
	doc := ourDocument(t)
	ping := doc.Paths.Value("/api/v1/ping").Get
	if len(*ping.Security) != 0 {
		t.Errorf("ping asks for %v", *ping.Security)
	}
	if ping.Responses.Status(401) != nil {
		t.Error("ping answers 401")
	}
}
