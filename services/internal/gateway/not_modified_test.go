package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
)

// TestNotModified: when the caller has the handler's ETag, the response is 304 without a body.
func TestNotModified(t *testing.T) {
	s := &recorder{answer: func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		err := grpc.SetHeader(ctx, metadata.Pairs("etag", `W/"7"`))
		answer := &projectsv1.ListProjectsResponse{}
		for range 100 { // enough to be compressed
			answer.Projects = append(answer.Projects, &projectsv1.Project{Id: 7, Name: "acme/web"})
		}
		return answer, err
	}}
	server := start(t, s, nil)
	path := server.URL + "/api/v1/deployments/acme/projects"
	for _, c := range []struct {
		method, header string
		want           int
	}{
		{"GET", `W/"7"`, 304}, {"GET", `"7"`, 304}, {"GET", `"6", "7"`, 304}, {"GET", "*", 304}, {"HEAD", `"7"`, 304},
		{"GET", `"8"`, 200}, {"GET", "7", 200}, {"GET", "", 200}, {"HEAD", `"8"`, 200},
	} {
		for _, encoding := range []string{"identity", "gzip"} {
			response, body := do(t, c.method, path, "", "If-None-Match", c.header, "Accept-Encoding", encoding)
			if response.StatusCode != c.want || (body != "") != (c.want == 200 && c.method == "GET") {
				t.Errorf("%s with If-None-Match %s, %s: %d %q", c.method, c.header, encoding, response.StatusCode, body)
			}
			if got := response.Header.Get("ETag"); got != `W/"7"` {
				t.Errorf("ETag %q", got)
			}
			if got := response.Header; c.want == 304 && (got.Get("Content-Type") != "" || got.Get("Content-Encoding") != "") {
				t.Errorf("304 with the headers of a body: %v", got)
			}
		}
	}
	if got := s.md().Get("if-none-match"); len(got) != 1 || got[0] != `"8"` {
		t.Errorf("the handler saw If-None-Match %q", got)
	}
}

// TestNotModifiedLines: several lines of the header are one list.
func TestNotModifiedLines(t *testing.T) {
	s := &recorder{answer: func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		return &projectsv1.ListProjectsResponse{}, grpc.SetHeader(ctx, metadata.Pairs("etag", `"7"`))
	}}
	server := start(t, s, nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/deployments/acme/projects", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	request.Header["If-None-Match"] = []string{`"5"`, `"6", "7"`}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNotModified {
		t.Errorf("got %d", response.StatusCode)
	}
}

// TestNotModifiedGetOnly: responses to changes are never suppressed.
func TestNotModifiedGetOnly(t *testing.T) {
	s := &recorder{}
	empty := answerEmpty(s)
	s.answer = func(ctx context.Context, request proto.Message) (proto.Message, error) {
		if err := grpc.SetHeader(ctx, metadata.Pairs("etag", `"7"`)); err != nil {
			return nil, err
		}
		return empty(ctx, request)
	}
	server := start(t, s, nil)
	response, _ := do(t, "PATCH", server.URL+"/api/v1/deployments/acme/projects/acme/web", "{}", "If-None-Match", `"7"`)
	if response.StatusCode != http.StatusOK {
		t.Errorf("got %d", response.StatusCode)
	}
}
