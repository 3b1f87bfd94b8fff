package lenient_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway/lenient"
)

var bodies = map[string]struct {
	body string
	into proto.Message
	want string // prototext, or the error's text after "error: "
}{
	"a byte order mark and blanks":    {"\xef\xbb\xbf {\"limit\":5} ", &scansv1.SearchScansRequest{}, `limit:5`},
	"blanks only":                     {" \n", &scansv1.SearchScansRequest{}, ``},
	"null":                            {"null", &scansv1.SearchScansRequest{}, ``},
	"a text":                          {`"x"`, &scansv1.SearchScansRequest{}, `error: the body must be a JSON object, got "x"`},
	"zero of an optional number":      {`{"page_size":0}`, &findingsv1.ListFindingsRequest{}, ``},
	"false of an optional boolean":    {`{"is_malicious":false}`, &findingsv1.ListFindingsRequest{}, `is_malicious:false`},
	"1 for a boolean":                 {`{"dedup":1}`, &findingsv1.ListFindingsRequest{}, `dedup:true`},
	"2 for a boolean":                 {`{"dedup":2}`, &findingsv1.ListFindingsRequest{}, `error: dedup must be true or false, got 2`},
	"camel case of a snake-case name": {`{"pageSize":200,"repositoryIds":["1",2]}`, &findingsv1.ListFindingsRequest{}, `page_size:200 repository_ids:1 repository_ids:2`},
	"a whole number with a fraction":  {`{"page":2.0}`, &findingsv1.ListFindingsRequest{}, `page:2`},
	"a fraction for a whole number":   {`{"page":2.5}`, &findingsv1.ListFindingsRequest{}, `error: page must be a whole number from -9223372036854775808 to 9223372036854775807, got 2.5`},
	"a number out of range":           {`{"limit":2147483648}`, &scansv1.SearchScansRequest{}, `error: limit must be a whole number from -2147483648 to 2147483647, got 2147483648`},
	"infinity":                        {`{"since":"Inf"}`, &findingsv1.ListFindingsRequest{}, `error: since must be a number, got "Inf"`},
	"a number too large for a double": {`{"since":1e999}`, &findingsv1.ListFindingsRequest{}, `error: since must be a number, got 1e999`},
	"null in a list":                  {`{"repos":["a",null,""]}`, &findingsv1.ListFindingsRequest{}, `repos:"a" repos:""`},
	"an empty text for a list":        {`{"repos":""}`, &findingsv1.ListFindingsRequest{}, ``},
	"an object for a text":            {`{"ref":{}}`, &findingsv1.ListFindingsRequest{}, `error: ref must be a string, got an object`},
	"a boolean for a text":            {`{"ref":true}`, &findingsv1.ListFindingsRequest{}, `error: ref must be a string, got true`},
	"a list for a number":             {`{"page":[1]}`, &findingsv1.ListFindingsRequest{}, `error: page must be a whole number from -9223372036854775808 to 9223372036854775807, got a list`},
	"a text for an object":            {`{"total_time":"x"}`, &scansv1.SearchScansRequest{}, `error: total_time must be an object, got a string`},
	"an enum word in a message":       {`{"products":["nope"]}`, &scansv1.SearchScansRequest{}, `error: products[0] must be one of PRODUCT_SAST, PRODUCT_SCA, PRODUCT_SECRETS, PRODUCT_AI_SAST, got "nope"`},
	"an enum number that is none":     {`{"products":[99]}`, &scansv1.SearchScansRequest{}, `error: products[0] must be one of PRODUCT_SAST, PRODUCT_SCA, PRODUCT_SECRETS, PRODUCT_AI_SAST, got 99`},
	"time with a zone":                {`{"since":"2020-11-18T23:28:12.391807+02:00"}`, &scansv1.SearchScansRequest{}, `since:{seconds:1605734892 nanos:391807000}`},
	"time with a blank":               {`{"since":"2020-11-18 23:28:12.391807+00:00"}`, &scansv1.SearchScansRequest{}, `since:{seconds:1605742092 nanos:391807000}`},
	"time with a lost plus":           {`{"since":"2020-11-18 23:28:12.391807 00:00"}`, &scansv1.SearchScansRequest{}, `since:{seconds:1605742092 nanos:391807000}`},
	"time without a zone":             {`{"since":"2020-11-18T23:28:12"}`, &scansv1.SearchScansRequest{}, `since:{seconds:1605742092}`},
	"a day":                           {`{"since":"2020-11-18"}`, &scansv1.SearchScansRequest{}, `since:{seconds:1605657600}`},
	"seconds since 1970":              {`{"since":1605742092.5}`, &scansv1.SearchScansRequest{}, `since:{seconds:1605742092 nanos:500000000}`},
	"no time":                         {`{"since":"yesterday"}`, &scansv1.SearchScansRequest{}, `error: since must be a time like 2026-05-04T10:20:30.123456Z, got "yesterday"`},
	"a time for a list":               {`{"since":[]}`, &scansv1.SearchScansRequest{}, `error: since must be a time like 2026-05-04T10:20:30.123456Z, got a list`},
	"a struct":                        {`{"stats":{"a":[1,null,{"b":"c"}]}}`, &scansv1.GetScanResponse{}, `stats:{fields:{key:"a" value:{list_value:{values:{number_value:1} values:{null_value:NULL_VALUE} values:{struct_value:{fields:{key:"b" value:{string_value:"c"}}}}}}}}`},
	"a struct that is none":           {`{"stats":[1]}`, &scansv1.GetScanResponse{}, `error: stats must be an object, got a list`},
	"bytes of the URL alphabet":       {`{"chunk":"_-8="}`, &scansv1.UploadReportRequest{}, `chunk:"\377\357"`},
	"bytes that are none":             {`{"chunk":"%"}`, &scansv1.UploadReportRequest{}, `error: chunk must be base64, got "%"`},
	"a mask":                          {`{"updateMask":"tags,primaryBranch"}`, &projectsv1.UpdateProjectRequest{}, `update_mask:{paths:"tags" paths:"primary_branch"}`},
	"two of a oneof":                  {`{"numberValue":1,"stringValue":"x"}`, &structpb.Value{}, `error: only one of numberValue and stringValue may be given`},
	"null in a list of objects":       {`{"options":[{"name":"x"},null]}`, &apipb.Method{}, `error: options[1] must not be null`},
	"null for a list of objects":      {`{"options":null}`, &apipb.Method{}, ``},
	"an any of an unknown type":       {`{"options":[{"name":"x","value":{"@type":"x/y.Z"}}]}`, &apipb.Method{}, `error: options[0].value must be an object with a known "@type", got an object`},
	"unsigned out of range":           {`{"positiveIntValue":-1}`, &descriptorpb.UninterpretedOption{}, `error: positiveIntValue must be a whole number from 0 to 18446744073709551615, got -1`},
	"the largest unsigned":            {`{"positiveIntValue":"18446744073709551615"}`, &descriptorpb.UninterpretedOption{}, `positive_int_value:18446744073709551615`},
}

func TestBody(t *testing.T) {
	for name, test := range bodies {
		t.Run(name, func(t *testing.T) {
			decoded, err := lenient.Body([]byte(test.body), test.into, nil)
			if want, isError := strings.CutPrefix(test.want, "error: "); isError {
				if err == nil || !strings.HasPrefix(err.Error(), "INVALID_ARGUMENT: ") || strings.TrimPrefix(err.Error(), "INVALID_ARGUMENT: ") != want {
					t.Fatalf("got %v, want %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := test.into.ProtoReflect().New().Interface()
			if err := prototext.Unmarshal([]byte(test.want), want); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(test.into, want) || decoded.Unknown != 0 {
				t.Errorf("got %v (%d unknown), want %v", test.into, decoded.Unknown, want)
			}
		})
	}
}

func TestBodyTooDeep(t *testing.T) {
	deep := `{"x":` + strings.Repeat("[", lenient.MaxDepth-1) + strings.Repeat("]", lenient.MaxDepth-1) + `}`
	if _, err := lenient.Body([]byte(deep), &scansv1.SearchScansRequest{}, nil); err != nil {
		t.Errorf("allowed depth: %v", err)
	}
	for _, body := range []string{strings.Repeat("[", 1<<20), `{"x":` + strings.Repeat(`{"x":`, 100)} {
		_, err := lenient.Body([]byte(body), &scansv1.SearchScansRequest{}, nil)
		if err == nil || !strings.Contains(err.Error(), "must nest at most 64 deep") || !strings.HasPrefix(err.Error(), "MALFORMED_JSON") {
			t.Errorf("got %v", err)
		}
	}
	brackets := `{"branch":"` + strings.Repeat("[{", 200) + `\"[["}`
	if _, err := lenient.Body([]byte(brackets), &scansv1.SearchScansRequest{}, nil); err != nil {
		t.Errorf("brackets in a text: %v", err)
	}
}

func TestPresent(t *testing.T) {
	decoded, err := lenient.Body([]byte(`{"tags":[],"primaryBranch":"","primary_branch":"x","managed_scan_config":null,"nope":1,"projectName":"a"}`),
		&projectsv1.UpdateProjectRequest{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, 3)
	for _, field := range decoded.Present {
		names = append(names, string(field.Name()))
	}
	if got := strings.Join(names, " "); got != "project_name primary_branch tags" || decoded.Unknown != 1 {
		t.Errorf("present %s, %d unknown", got, decoded.Unknown)
	}
}

// TestReadsWhatProtojsonWrites: canonical JSON is decoded unchanged.
func TestReadsWhatProtojsonWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		request := &findingsv1.ListFindingsRequest{
			DeploymentSlug: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "slug"),
			Since:          rapid.Float64Range(-1e12, 1e12).Draw(t, "since"),
			Page:           rapid.Int64().Draw(t, "page"),
			Dedup:          rapid.Bool().Draw(t, "dedup"),
			Repos:          rapid.SliceOf(rapid.StringOf(rapid.RuneFrom([]rune("ab/ ,\"\\é日\n")))).Draw(t, "repos"),
			RepositoryIds:  rapid.SliceOf(rapid.Int64()).Draw(t, "ids"),
		}
		if rapid.Bool().Draw(t, "has page size") {
			request.PageSize = proto.Int64(rapid.Int64Range(1, 1<<40).Draw(t, "page size"))
		}
		encoded, err := protojson.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		got := &findingsv1.ListFindingsRequest{}
		if _, err := lenient.Body(encoded, got, nil); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, request) {
			t.Fatalf("got %v, want %v", got, request)
		}
	})
}

// TestQueryNeverFailsTheRouter: grpc-gateway's parser accepts everything that Query accepts.
func TestQueryNeverFailsTheRouter(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "1", "True", "x", "-5", "1.5", "high,low", "SEVERITY_HIGH", "critical", "2020-11-18", "1e3", "a b"})
	name := rapid.SampledFrom([]string{
		"page", "page_size", "pageSize", "dedup", "repos", "repos[0]", "repos[]", "repository_ids", "is_malicious", "since", "ref", "nope",
		"severity", "status", "validationState", "limit", "cursor", "repo", "deployment_id", "since.seconds", "repos[x]",
	})
	messages := []proto.Message{&findingsv1.ListFindingsRequest{}, &findingsv1.ListSecretsRequest{}}
	rapid.Check(t, func(t *rapid.T) {
		pairs := make([]string, rapid.IntRange(0, 5).Draw(t, "pairs"))
		for i := range pairs {
			pairs[i] = url.QueryEscape(name.Draw(t, "name")) + "=" + url.QueryEscape(word.Draw(t, "value"))
		}
		raw := strings.Join(pairs, "&")
		for _, message := range messages {
			values, err := lenient.Query(raw, message.ProtoReflect().Descriptor(), nil)
			if err != nil {
				if apierr.HTTPStatus(err) != 400 {
					t.Fatalf("%s: %v", raw, err)
				}
				continue
			}
			into := message.ProtoReflect().New().Interface()
			if err := new(runtime.DefaultQueryParser).Parse(into, values, utilities.NewDoubleArray(nil)); err != nil {
				t.Fatalf("%s became %v: %v", raw, values, err)
			}
		}
	})
}

func TestQuerySkips(t *testing.T) {
	values, err := lenient.Query("deployment_slug=a&deploymentSlug=b&ref=c&target.project=d", (&findingsv1.ListFindingsRequest{}).ProtoReflect().Descriptor(),
		lenient.Fields("deployment_slug"))
	if err != nil || values.Encode() != "ref=c" {
		t.Errorf("%v %v", values, err)
	}
	values, err = lenient.Query("deploymentSlug=a&target.project=d", (&scansv1.UploadReportRequest{}).ProtoReflect().Descriptor(),
		func(field protoreflect.FieldDescriptor) bool { return field.Name() == "deployment_slug" })
	if err != nil || values.Encode() != "target.project=d" {
		t.Errorf("%v %v", values, err)
	}
}

// FuzzPosition: the reader reports the same error positions as encoding/json.
func FuzzPosition(f *testing.F) {
	for _, seed := range []string{"{}", "{", `{"a":1,}`, "\n\n x", `{"limit":"\x"}`, "[[[[", `"\u12"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, err := lenient.Body(body, &scansv1.SearchScansRequest{}, nil)
		trimmed := strings.TrimSpace(strings.TrimPrefix(string(body), "\xef\xbb\xbf"))
		malformed := err != nil && strings.HasPrefix(err.Error(), "MALFORMED_JSON")
		if valid := trimmed == "" || json.Valid([]byte(trimmed)); valid == malformed && !strings.Contains(errText(err), "deep") {
			t.Fatalf("%q: valid %t, but %v", body, valid, err)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
