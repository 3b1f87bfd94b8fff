package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// emptyResponse makes the empty response message of an RPC.
func emptyResponse(fullMethod string) (proto.Message, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", ".")
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, err
	}
	output := descriptor.(protoreflect.MethodDescriptor).Output().FullName()
	known, err := protoregistry.GlobalTypes.FindMessageByName(output)
	if err != nil {
		return nil, err
	}
	return known.New().Interface(), nil
}

const base = "/api/v1/deployments/acme"

// requests lists which RPC a request reaches, without "/palisade.", and with which request message, as prototext.
var requests = map[string]struct {
	method, path, body, rpc, want string
}{
	"project with a literal slash": {
		"GET", base + "/projects/acme/web", "", "projects.v1.ProjectsService/GetProject",
		`deployment_slug:"acme" project_name:"acme/web"`,
	},
	"project with an escaped slash": {
		"GET", base + "/projects/acme%2Fweb", "", "projects.v1.ProjectsService/GetProject",
		`deployment_slug:"acme" project_name:"acme/web"`,
	},
	"project with a slash escaped in lower case": {
		"GET", base + "/projects/acme%2fweb", "", "projects.v1.ProjectsService/GetProject",
		`deployment_slug:"acme" project_name:"acme/web"`,
	},
	"project with an escaped percent sign": {
		"GET", base + "/projects/acme/100%25", "", "projects.v1.ProjectsService/GetProject",
		`deployment_slug:"acme" project_name:"acme/100%"`,
	},
	"project whose name looks like an escape": {
		"GET", base + "/projects/acme/a%252Fb", "", "projects.v1.ProjectsService/GetProject",
		`deployment_slug:"acme" project_name:"acme/a%2Fb"`,
	},
	"project with blanks, a plus and letters of the world": {
		"GET", base + "/projects/acme/my%20web+app/%C3%BCber/日本", "", "projects.v1.ProjectsService/GetProject",
		`deployment_slug:"acme" project_name:"acme/my web+app/über/日本"`,
	},
	"project with a colon and a question mark": {
		"GET", base + "/projects/acme/a:b%3Fc", "", "projects.v1.ProjectsService/GetProject",
		`deployment_slug:"acme" project_name:"acme/a:b?c"`,
	},
	"an escaped letter in a literal of the path": {
		"GET", "/api/v1/deploymen%74s/acme/projects", "", "projects.v1.ProjectsService/ListProjects",
		`deployment_slug:"acme"`,
	},
	"delete tags is not delete project": {
		"DELETE", base + "/projects/acme/web/tags?tags=a&tags=b,c", "", "projects.v1.ProjectsService/DeleteProjectTags",
		`deployment_slug:"acme" project_name:"acme/web" tags:"a" tags:"b,c"`,
	},
	"delete tags in the body": {
		"DELETE", base + "/projects/acme/web/tags", `{"tags":["a","b,c"],"projectName":"x"}`, "projects.v1.ProjectsService/DeleteProjectTags",
		`deployment_slug:"acme" project_name:"acme/web" tags:"a" tags:"b,c"`,
	},
	"delete tags in the body and in the query": {
		"DELETE", base + "/projects/acme/web/tags?tags[0]=b&projectName=x", `{"tags":["a"]}`, "projects.v1.ProjectsService/DeleteProjectTags",
		`deployment_slug:"acme" project_name:"acme/web" tags:"a" tags:"b"`,
	},
	"delete tags with an escaped slash": {
		"DELETE", base + "/projects/acme%2Fweb/tags", "", "projects.v1.ProjectsService/DeleteProjectTags",
		`deployment_slug:"acme" project_name:"acme/web"`,
	},
	"delete project": {
		"DELETE", base + "/projects/acme/web", "", "projects.v1.ProjectsService/DeleteProject",
		`deployment_slug:"acme" project_name:"acme/web"`,
	},
	"put tags; the path wins over the body": {
		"PUT", base + "/projects/acme/web/tags", `{"deploymentSlug":"other","projectName":"x","tags":["a"]}`,
		"projects.v1.ProjectsService/AddProjectTags",
		`deployment_slug:"acme" project_name:"acme/web" tags:"a"`,
	},
	"managed scan is not update": {
		"PATCH", base + "/projects/acme/web/managed-scan", `{"full_scan":{"enabled":true}}`,
		"projects.v1.ProjectsService/ToggleProjectManagedScan",
		`deployment_slug:"acme" project_name:"acme/web" full_scan:{enabled:true}`,
	},
	"update fills the mask from the keys that are not null": {
		"PATCH", base + "/projects/acme/web", `{"tags":[],"primary_branch":null,"projectName":"q","managed_scan_config":{}}`,
		"projects.v1.ProjectsService/UpdateProject",
		`deployment_slug:"acme" project_name:"acme/web" managed_scan_config:{} update_mask:{paths:"tags" paths:"managed_scan_config"}`,
	},
	"update keeps a mask that is given": {
		"PATCH", base + "/projects/acme/web", `{"tags":["a"],"primary_branch":"main","updateMask":"primaryBranch"}`,
		"projects.v1.ProjectsService/UpdateProject",
		`deployment_slug:"acme" project_name:"acme/web" tags:"a" primary_branch:"main" update_mask:{paths:"primary_branch"}`,
	},
	"update with an empty body": {
		"PATCH", base + "/projects/acme/web", ``, "projects.v1.ProjectsService/UpdateProject",
		`deployment_slug:"acme" project_name:"acme/web"`,
	},
	"findings: every spelling of lists and booleans": {
		"GET", base + "/findings?&&dedup=True&severities=high,critical&repos=a&repos=b&repository_ids[0]=1&repository_ids[1]=2" +
			"&ref=&status=&is_malicious=False&since=1720730785.25&page_size=3000&unknown=1&rules[]=a,b&issue_type=sca", "",
		"findings.v1.FindingsService/ListFindings",
		`deployment_slug:"acme" dedup:true severities:"high" severities:"critical" repos:"a" repos:"b"
			 repository_ids:1 repository_ids:2 is_malicious:false since:1720730785.25 page_size:3000 rules:"a,b" issue_type:"sca"`,
	},
	"findings: the query does not override the path": {
		"GET", base + "/findings?deployment_slug=other&deploymentSlug=other", "",
		"findings.v1.FindingsService/ListFindings", `deployment_slug:"acme"`,
	},
	"secrets: camel case, enum words and times": {
		"GET", "/api/v1/deployments/7/secrets?validationState=confirmed_valid,VALIDATION_STATE_NO_VALIDATOR&severity=1&status=open" +
			"&since=2020-11-18T23:28:12.391807%2B00:00&limit=", "",
		"findings.v1.SecretsService/ListSecrets",
		`deployment_id:7 validation_state:VALIDATION_STATE_CONFIRMED_VALID validation_state:VALIDATION_STATE_NO_VALIDATOR
			 severity:SEVERITY_HIGH status:FINDING_STATUS_OPEN since:{seconds:1605742092 nanos:391807000}`,
	},
	"scans: a whole struct of zero values": {
		"POST", "/api/v1/deployments/7/scans/search",
		`{"repository_id":0,"is_full_scan":false,"since":"0001-01-01T00:00:00Z","total_time":{"min":0,"max":0},
			  "statuses":null,"branch":"","cursor":"","limit":0}`,
		"scans.v1.ScansService/SearchScans", `deployment_id:7 total_time:{}`,
	},
	"scans: numbers as strings, strings as numbers, scalars as lists": {
		"POST", "/api/v1/deployments/7/scans/search",
		`{"repositoryId":"11","is_full_scan":"True","branch":42,"limit":"5","products":"sast","statuses":["SCAN_STATUS_ERROR",2],
			  "total_time":{"min":"1.5"},"deploymentId":"42"}`,
		"scans.v1.ScansService/SearchScans",
		`deployment_id:7 repository_id:11 is_full_scan:true branch:"42" limit:5 products:PRODUCT_SAST
			 statuses:SCAN_STATUS_ERROR statuses:SCAN_STATUS_COMPLETED total_time:{min:1.5}`,
	},
}

// TestRequests sends each of the requests above.
func TestRequests(t *testing.T) {
	for name, test := range requests {
		t.Run(name, func(t *testing.T) {
			s := &recorder{}
			s.answer = answerEmpty(s)
			server := start(t, s, nil)
			response, body := do(t, test.method, server.URL+test.path, test.body)
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", response.StatusCode, body)
			}
			if got := response.Header.Get("X-Api-Maturity"); got != "Experimental" {
				t.Errorf("X-Api-Maturity %q", got)
			}
			if got := response.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
			method, request := s.last()
			if method != "/palisade."+test.rpc {
				t.Fatalf("reached %s", method)
			}
			want := request.ProtoReflect().New().Interface()
			if err := prototext.Unmarshal([]byte(test.want), want); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(want, request) {
				t.Errorf("got  %v\nwant %v", request, want)
			}
		})
	}
}

type object struct{ method, path, body string }

// invalid is the body of an error with one field violation; text is a JSON string.
func invalid(field, text, code string) string {
	return `{"error":` + text + `,"message":` + text + `,"code":"` + code + `","status":"INVALID_ARGUMENT","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"` + field + `","description":` + text + `}]}` +
		`],"requestId":"test-1"}`
}

// plain is the body of an error without details; text is a JSON string.
func plain(text, code, status string) string {
	return `{"error":` + text + `,"message":` + text + `,"code":"` + code + `","status":"` + status + `","details":[],"requestId":"test-1"}`
}

// errorBodies are refused requests with the exact response.
var errorBodies = map[string]struct {
	request object
	status  int
	want    string
}{
	"page size too small": {
		object{"GET", base + "/findings?page_size=50", ""}, 400,
		invalid("page_size", `"page_size must be between 100 and 3000, got 50"`, "PAGE_SIZE_OUT_OF_RANGE"),
	},
	"page size 0 in a query is a value": {
		object{"GET", base + "/projects?page_size=0", ""}, 400,
		invalid("page_size", `"page_size must be between 100 and 3000, got 0"`, "PAGE_SIZE_OUT_OF_RANGE"),
	},
	"unknown word": {
		object{"GET", base + "/findings?status=opn", ""}, 400,
		invalid("status[0]", `"status[0] must be one of open, fixed, ignored, reviewing, fixing, provisionally_ignored; got \"opn\""`, "INVALID_ARGUMENT"),
	},
	"unknown word in a list": {
		object{"GET", base + "/findings?severities=high,huge", ""}, 400,
		invalid("severities[1]", `"severities[1] must be one of low, medium, high, critical; got \"huge\""`, "INVALID_ARGUMENT"),
	},
	"bad number in the query": {
		object{"GET", base + "/findings?page=first", ""}, 400,
		invalid("page", `"page must be a whole number from -9223372036854775808 to 9223372036854775807, got \"first\""`, "INVALID_ARGUMENT"),
	},
	"bad boolean in the query": {
		object{"GET", base + "/findings?dedup=maybe", ""}, 400,
		invalid("dedup", `"dedup must be true or false, got \"maybe\""`, "INVALID_ARGUMENT"),
	},
	"two values for one": {
		object{"GET", base + "/findings?page=1&page=2", ""}, 400,
		invalid("page", `"page takes one value, got \"1\" and \"2\""`, "INVALID_ARGUMENT"),
	},
	"bad enum in the query": {
		object{"GET", "/api/v1/deployments/7/secrets?severity=huge", ""}, 400,
		invalid("severity", `"severity must be one of SEVERITY_HIGH, SEVERITY_MEDIUM, SEVERITY_LOW, SEVERITY_CRITICAL, got \"huge\""`, "INVALID_ARGUMENT"),
	},
	"bad escape in the query": {
		object{"GET", base + "/findings?ref=%zz", ""}, 400,
		invalid("ref", `"ref must be percent-encoded, got \"%zz\""`, "INVALID_ARGUMENT"),
	},
	"deployment id that is no number": {
		object{"GET", "/api/v1/deployments/acme/secrets", ""}, 404,
		plain(`"there is no deployment \"acme\": deploymentId is a whole number"`, "NOT_FOUND", "NOT_FOUND"),
	},
	"id out of range": {
		object{"GET", "/api/v1/deployments/7/scan/99999999999999999999", ""}, 404,
		plain(`"there is no scan \"99999999999999999999\": scanId is a whole number"`, "NOT_FOUND", "NOT_FOUND"),
	},
	"unknown route": {
		object{"GET", "/api/v9/nothing", ""}, 404,
		plain(`"no operation has the path \"/api/v9/nothing\""`, "ROUTE_NOT_FOUND", "NOT_FOUND"),
	},
	"empty name in the path": {
		object{"GET", base + "/projects/", ""}, 404,
		plain(`"no operation has the path \"/api/v1/deployments/acme/projects/\""`, "ROUTE_NOT_FOUND", "NOT_FOUND"),
	},
	"wrong method": {
		object{"POST", base + "/findings", "{}"}, 405,
		plain(`"the path does not take POST, only GET, HEAD"`, "METHOD_NOT_ALLOWED", "UNIMPLEMENTED"),
	},
	"OPTIONS": {
		object{"OPTIONS", base + "/projects/acme/web", ""}, 405,
		plain(`"the path does not take OPTIONS, only DELETE, GET, HEAD, PATCH"`, "METHOD_NOT_ALLOWED", "UNIMPLEMENTED"),
	},
	"wrong method on a fixed route": {
		object{"POST", "/healthz", "{}"}, 405,
		plain(`"the path does not take POST, only GET, HEAD"`, "METHOD_NOT_ALLOWED", "UNIMPLEMENTED"),
	},
	"operation that is not built": {
		object{"GET", "/api/v2/deployments", ""}, 501,
		plain(`"method ListDeployments not implemented"`, "NOT_IMPLEMENTED", "UNIMPLEMENTED"),
	},
	"broken JSON": {
		object{"POST", "/api/v1/deployments/7/scans/search", "{\n  \"limit\": 5,\n  oops}"}, 400,
		plain(`"the body is not valid JSON: line 3, column 3 (byte 18): invalid character 'o' looking for beginning of object key string"`, "MALFORMED_JSON", "INVALID_ARGUMENT"),
	},
	"JSON that ends early": {
		object{"POST", "/api/v1/deployments/7/scans/search", `{"limit": 5`}, 400,
		plain(`"the body is not valid JSON: line 1, column 12 (byte 11): unexpected end of JSON input"`, "MALFORMED_JSON", "INVALID_ARGUMENT"),
	},
	"something after the JSON": {
		object{"POST", "/api/v1/deployments/7/scans/search", `{} x`}, 400,
		plain(`"the body is not valid JSON: line 1, column 4 (byte 3): invalid character 'x' after top-level value"`, "MALFORMED_JSON", "INVALID_ARGUMENT"),
	},
	"a list for a body": {
		object{"POST", "/api/v1/deployments/7/scans/search", `[1]`}, 400,
		invalid("body", `"the body must be a JSON object, got a list"`, "INVALID_ARGUMENT"),
	},
	"wrong type deep in the body": {
		object{"POST", "/api/v1/deployments/7/scans/search", `{"total_time":{"min":"fast"}}`}, 400,
		invalid("total_time.min", `"total_time.min must be a number, got \"fast\""`, "INVALID_ARGUMENT"),
	},
	"wrong type in a list of the body": {
		object{"POST", base + "/triage", `{"issue_type":"sast","issue_ids":[1,"x"]}`}, 400,
		invalid("issue_ids[1]", `"issue_ids[1] must be a whole number from -9223372036854775808 to 9223372036854775807, got \"x\""`, "INVALID_ARGUMENT"),
	},
	"limit out of range in the body": {
		object{"POST", "/api/v1/deployments/7/scans/search", `{"limit":501}`}, 400,
		invalid("limit", `"limit must be between 0 and 500, got 501"`, "PAGE_SIZE_OUT_OF_RANGE"),
	},
	"text that is too long": {
		object{"PATCH", base + "/projects/acme/web", `{"primary_branch":"` + strings.Repeat("é", 256) + `"}`}, 400,
		invalid("primary_branch", `"primary_branch must have at most 255 characters, got 256"`, "INVALID_ARGUMENT"),
	},
	"body too large": {
		object{"POST", "/api/v1/deployments/7/scans/search", `{"branch":"` + strings.Repeat("x", 1<<20) + `"}`}, 413,
		plain(`"the body must have at most 1048576 bytes"`, "BODY_TOO_LARGE", "RESOURCE_EXHAUSTED"),
	},
}

// TestErrorBodies sends each of the requests above.
func TestErrorBodies(t *testing.T) {
	for name, test := range errorBodies {
		t.Run(name, func(t *testing.T) {
			s := &recorder{}
			server := start(t, s, withHealth)
			response, body := do(t, test.request.method, server.URL+test.request.path, test.request.body)
			if response.StatusCode != test.status || body != test.want {
				t.Errorf("got  %d %s\nwant %d %s", response.StatusCode, body, test.status, test.want)
			}
			for header, want := range map[string]string{
				"Content-Type": "application/json", "X-Request-Id": "test-1",
				"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			} {
				if got := response.Header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
			if test.status == http.StatusMethodNotAllowed && response.Header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}
