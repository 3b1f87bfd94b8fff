package apidoc_test

import (
	"context"
	"slices"
	"strings"
	"testing"
)

const sourceFile = "palisade/sample/v1/sample.proto"

// sample makes a proto file of ours from the body of a service and further definitions.
func sample(service, rest string) map[string]string {
	return map[string]string{sourceFile: `syntax = "proto3"; package palisade.sample.v1;
		import "palisade/options/v1/options.proto"; import "google/api/annotations.proto";
		import "buf/validate/validate.proto"; import "google/protobuf/timestamp.proto";
		service SampleThingsService {` + service + `}
		message Empty {} ` + rest}
}

const (
	ruleRead   = `option (palisade.options.v1.rule) = {permission: PERMISSION_READ schemes: [SCHEME_JWT] maturity: MATURITY_BETA success_code: 201};`
	rulePublic = `option (palisade.options.v1.rule) = {permission: PERMISSION_PUBLIC maturity: MATURITY_STABLE};`
)

func TestGenerateRefuses(t *testing.T) {
	get := `option (google.api.http) = {get: "/x"};`
	tests := map[string]struct{ service, rest, want string }{
		"no rule": {`rpc Get(Empty) returns (Empty) {` + get + `}`, "",
			"palisade.sample.v1.SampleThingsService.Get: has a path but no (palisade.options.v1.rule)"},
		"no maturity": {`rpc Get(Empty) returns (Empty) {` + get +
			`option (palisade.options.v1.rule) = {permission: PERMISSION_PUBLIC}; }`, "", "maturity is MATURITY_UNSPECIFIED"},
		"public with schemes": {`rpc Get(Empty) returns (Empty) {` + get +
			`option (palisade.options.v1.rule) = {permission: PERMISSION_PUBLIC schemes: [SCHEME_JWT] maturity: MATURITY_BETA}; }`,
			"", "only PERMISSION_PUBLIC has none, and it must have none"},
		"closed without schemes": {`rpc Get(Empty) returns (Empty) {` + get +
			`option (palisade.options.v1.rule) = {permission: PERMISSION_READ maturity: MATURITY_BETA}; }`,
			"", "permission is PERMISSION_READ with 0 schemes"},
		"streaming": {`rpc Get(Empty) returns (stream Empty) {` + get + rulePublic + `}`, "",
			"google.api.http on a streaming RPC cannot be described"},
		"same path": {`rpc Get(Empty) returns (Empty) {` + get + rulePublic + `} rpc Other(Empty) returns (Empty) {` + get +
			rulePublic + `}`, "", "GET /x is already the path of another RPC"},
		"no such path field": {`rpc Get(Empty) returns (Empty) { option (google.api.http) = {get: "/x/{y}"}; ` + rulePublic + `}`,
			"", `path /x/{y}: no field "y" in the request`},
		"map in the query": {`rpc Get(M) returns (Empty) {` + get + rulePublic + `}`, `message M { map<string, string> f = 1; }`,
			"palisade.sample.v1.M.f: maps and lists of messages cannot be given in the query"},
		"recursion in the query": {`rpc Get(M) returns (Empty) {` + get + rulePublic + `}`, `message M { M m = 1; }`,
			"a recursive message cannot be given in the query"},
		"upload without chunk": {`rpc Put(stream Empty) returns (Empty) { option (palisade.options.v1.rule) = {
			permission: PERMISSION_PUBLIC maturity: MATURITY_BETA upload_path: "/x"}; }`, "", "exactly one bytes field, got 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := generate(sample(tc.service, tc.rest), sourceFile)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestGenerateRefusesTwoOperationsOfOneName(t *testing.T) {
	sources := sample(`rpc Get(Empty) returns (Empty) { option (google.api.http) = {get: "/x"}; `+rulePublic+`}`,
		`service OtherService { rpc Get(Empty) returns (Empty) { option (google.api.http) = {get: "/y"}; `+rulePublic+`} }`)
	_, err := generate(sources, sourceFile)
	if err == nil || !strings.Contains(err.Error(), "operation id Get is already that of palisade.sample.v1.SampleThingsService.Get") {
		t.Errorf("got error %v", err)
	}
}

// changeThing is an RPC with two paths, a field as the body, and parameters of several sorts.
var changeThing = sample(`
	// Changes a thing. More text.
	rpc ChangeThing(ChangeRequest) returns (Empty) {
		option (google.api.http) = {
			patch: "/things/{thing_id}/{rest=**}"
			body: "patch"
			additional_bindings {put: "/things/{thing_id}/whole/{rest}" body: "*"}
		};
		`+ruleRead+`
	}`, `
	message ChangeRequest {
		// Which thing.
		int64 thing_id = 1;
		string rest = 2;
		Patch patch = 3;
		google.protobuf.Timestamp if_before = 4;
		Inner inner = 5;
		float share = 6 [(buf.validate.field).float = {gt: 0 lt: 1}];
	}
	message Inner { bool really = 1; }
	message Patch {
		string name = 1 [(buf.validate.field).string.min_len = 1];
		string secret = 2 [(palisade.options.v1.secret) = true];
		Kind kind = 3 [deprecated = true];
	}
	enum Kind { option allow_alias = true; KIND_UNSPECIFIED = 0; KIND_A = 1; KIND_B = 1; }
`)

func TestOperationOfTwoPaths(t *testing.T) {
	doc := document(t, changeThing, sourceFile)
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	patch := doc.Paths.Value("/things/{thingId}/{rest}").Patch
	put := doc.Paths.Value("/things/{thingId}/whole/{rest}").Put
	if patch == nil || put == nil || put.OperationID != "ChangeThing2" {
		t.Fatalf("the operations are %+v and %+v", patch, put)
	}
	if patch.Summary != "Changes a thing" || patch.Description != "**Beta.** Changes a thing. More text." || patch.Tags[0] != "Sample things" {
		t.Errorf("summary %q, description %q, tags %v", patch.Summary, patch.Description, patch.Tags)
	}
	if patch.Responses.Status(201) == nil || patch.Responses.Status(200) != nil {
		t.Error("the success code of the rule is not used")
	}
	if len(*patch.Security) != 1 || (*patch.Security)[0]["PlatformJWT"] == nil {
		t.Errorf("security is %v", *patch.Security)
	}
	if id := patch.Parameters.GetByInAndName("path", "thingId"); id == nil || id.Schema.Value.Format != "int64" {
		t.Errorf("thingId is %+v", id)
	}
	for _, name := range []string{"ifBefore", "inner.really", "share"} {
		if patch.Parameters.GetByInAndName("query", name) == nil {
			t.Errorf("no query parameter %s", name)
		}
		if put.Parameters.GetByInAndName("query", name) != nil {
			t.Errorf("query parameter %s beside a whole body", name)
		}
	}
	share := patch.Parameters.GetByInAndName("query", "share")
	if !share.Required || *share.Schema.Value.Min != 0 || !*share.Schema.Value.ExclusiveMin.Bool {
		t.Errorf("share is %+v", share.Schema.Value)
	}
}

func TestBodyOfOneField(t *testing.T) {
	doc := document(t, changeThing, sourceFile)
	body := doc.Paths.Value("/things/{thingId}/{rest}").Patch.RequestBody.Value
	schema := doc.Components.Schemas["sample.v1.Patch"].Value
	if !body.Required || !slices.Equal(schema.Required, []string{"name"}) {
		t.Errorf("body required %v, members required %v", body.Required, schema.Required)
	}
	if secret := schema.Properties["secret"].Value; !secret.WriteOnly || secret.Format != "password" {
		t.Errorf("secret is %+v", secret)
	}
	if kind := doc.Components.Schemas["sample.v1.Kind"].Value; !slices.Equal(kind.Enum, []any{"KIND_A"}) {
		t.Errorf("kind allows %v", kind.Enum)
	}
	if !schema.Properties["kind"].Value.Deprecated {
		t.Error("kind is not deprecated")
	}
}

// TestSharedMessage checks the schema of a message that is both sent and answered: nothing in it may say that
// an answer with zero values is wrong.
func TestSharedMessage(t *testing.T) {
	doc := document(t, sample(`rpc PutThing(Thing) returns (Thing) { option (google.api.http) = {put: "/things/{id}" body: "*"}; `+ruleRead+`}`, `
		message Thing {
			string id = 1 [(buf.validate.field).string.min_len = 1];
			string state = 2 [(buf.validate.field).string = {in: ["on", "off"]}, (buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE];
			int32 size = 3 [(buf.validate.field).int32.gte = 1, (buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE];
			string mode = 4 [(buf.validate.field).string = {in: ["a"]}, (buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE,
				(palisade.options.v1.json).unset = UNSET_NULL];
			repeated string names = 5 [(buf.validate.field).repeated = {min_items: 1 max_items: 3 unique: true items {string {max_len: 4}}}];
			map<string, int32> sizes = 6 [(buf.validate.field).map = {max_pairs: 2 values {int32 {lt: 9}}}];
		}`), sourceFile)
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	thing := doc.Components.Schemas["sample.v1.Thing"].Value
	if !slices.Equal(thing.Required, []string{"names"}) {
		t.Errorf("required are %v; the id is in the path, and only names must not be empty", thing.Required)
	}
	if state := thing.Properties["state"].Value; !slices.Equal(state.Enum, []any{"on", "off", ""}) {
		t.Errorf("state allows %v", state.Enum)
	}
	if size := thing.Properties["size"].Value; size.Min != nil {
		t.Errorf("size has the minimum %v, but 0 is answered", *size.Min)
	}
	if mode := thing.Properties["mode"].Value; !slices.Equal(mode.Enum, []any{"a", nil}) || !mode.Nullable {
		t.Errorf("mode allows %v", mode.Enum)
	}
	names := thing.Properties["names"].Value
	if names.MinItems != 1 || *names.MaxItems != 3 || !names.UniqueItems || *names.Items.Value.MaxLength != 4 {
		t.Errorf("names is %+v", names)
	}
	sizes := thing.Properties["sizes"].Value
	if *sizes.MaxProps != 2 || *sizes.AdditionalProperties.Schema.Value.Max != 9 {
		t.Errorf("sizes is %+v", sizes)
	}
}
