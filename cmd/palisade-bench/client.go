package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

// pageSize is the number of findings on a page.
const pageSize = 100

// pageQuery selects the findings of a page.
type pageQuery struct {
	Status   string `json:"status"`   // empty: all
	Severity string `json:"severity"` // empty: all
	Page     int    `json:"page"`
	Size     int    `json:"size"`  // 0 means pageSize
	Since    int    `json:"since"` // seconds since 1970; any low number selects all findings, but makes it a different list for the server
}

func (q pageQuery) size() int { return cmp.Or(q.Size, pageSize) }

func (q pageQuery) encode() string {
	values := url.Values{"page_size": {strconv.Itoa(q.size())}}
	if q.Status != "" {
		values.Set("status", q.Status)
	}
	if q.Severity != "" {
		values.Set("severities", q.Severity)
	}
	if q.Page > 0 {
		values.Set("page", strconv.Itoa(q.Page))
	}
	if q.Since > 0 {
		values.Set("since", strconv.Itoa(q.Since))
	}
	return values.Encode()
}

// client calls one server over HTTP, with a fixed number of connections.
type client struct {
	http       *http.Client
	base       string
	token      string
	deployment string // slug
}

func newClient(address, token string, connections int) *client {
	return &client{
		http: &http.Client{Transport: &http.Transport{
			MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections,
			DisableCompression: true, // requested where it is measured
			DialContext:        (&net.Dialer{Control: roomToReceive}).DialContext,
		}},
		base: "http://" + address, token: token, deployment: deployment,
	}
}

// roomToReceive enlarges the receive buffer for a whole response. A segment on loopback has 64 KB. With the default
// buffer of two segments, the sender sometimes waits 40 ms for a delayed acknowledgement. On real networks segments are
// small.
func roomToReceive(_, _ string, conn syscall.RawConn) (err error) {
	failed := conn.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1<<20) })
	return errors.Join(failed, err)
}

func (c *client) close() { c.http.CloseIdleConnections() }

// send returns a response with status 200 or 201; the caller closes its body.
func (c *client) send(ctx context.Context, method, path, encoding string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if encoding != "" {
		request.Header.Set("Accept-Encoding", encoding)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return response, nil
}

// call sends an object and decodes the response into another; both may be nil.
func (c *client) call(ctx context.Context, method, path string, body, into any) (err error) {
	var encoded []byte
	if body != nil {
		if encoded, err = json.Marshal(body); err != nil {
			return err
		}
	}
	response, err := c.send(ctx, method, path, "", bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// path returns a path in the client's deployment.
func (c *client) path(below string) string {
	return "/api/v1/deployments/" + c.deployment + "/" + below
}

func (c *client) findingsPath(q pageQuery) string { return c.path("findings?" + q.encode()) }

// page reads one page of findings.
func (c *client) page(ctx context.Context, q pageQuery) ([]byte, error) {
	response, err := c.send(ctx, http.MethodGet, c.findingsPath(q), "", nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// get returns a request for the load generator. It reads the whole response and requires the same size as the first
// time, unless want is 0.
func (c *client) get(path, encoding string, want int64) func(context.Context) error {
	return func(ctx context.Context) error {
		response, err := c.send(ctx, http.MethodGet, path, encoding, nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		got, err := io.Copy(io.Discard, response.Body)
		if err == nil && want != 0 && got != want {
			err = fmt.Errorf("GET %s: got %d bytes, want %d", path, got, want)
		}
		return err
	}
}

// uploaded has the fields of an upload's response that are checked here.
type uploaded struct {
	ScanID    int64 `json:"scan_id"`
	Created   int   `json:"created"`
	Unchanged int   `json:"unchanged"`
	Skipped   int   `json:"skipped"`
}

// upload sends a report.
func (c *client) upload(ctx context.Context, project, ref, category string, report []byte) (uploaded, error) {
	return c.uploadFrom(ctx, project, ref, category, bytes.NewReader(report))
}

// uploadFrom streams a report.
func (c *client) uploadFrom(ctx context.Context, project, ref, category string, report io.Reader) (uploaded, error) {
	var answer uploaded
	values := url.Values{"project": {project}, "ref": {ref}}
	if category != "" {
		values.Set("category", category)
	}
	response, err := c.send(ctx, http.MethodPost, c.path("reports?"+values.Encode()), "", report)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}

// create uploads a report of the given number of new findings.
func (c *client) create(ctx context.Context, project, ref, category string, report []byte, results int) error {
	answer, err := c.upload(ctx, project, ref, category, report)
	if err == nil && answer.Created != results {
		err = fmt.Errorf("upload to %s: want %d findings created, got %+v", project, results, answer)
	}
	return err
}

// triage triages findings and returns the number of changed findings, including findings on other refs.
func (c *client) triage(ctx context.Context, ids []int64, state string) (int, error) {
	var answer struct {
		Triaged int `json:"num_triaged"`
	}
	err := c.call(ctx, http.MethodPost, c.path("triage"),
		object{"issue_type": "sast", "issue_ids": ids, "new_triage_state": state, "new_note": "looked at by the benchmark"}, &answer)
	return answer.Triaged, err
}

// largeMessage is enough for a page of 3,000 findings; gRPC's default message limit of 4 MiB is not.
const largeMessage = 32 << 20

// dial opens one gRPC connection.
func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largeMessage)))
}

// list returns a gRPC request for the load generator.
func list(conn *grpc.ClientConn, token string, q pageQuery) func(context.Context) error {
	findings := findingsv1.NewFindingsServiceClient(conn)
	size := int64(q.size())
	request := &findingsv1.ListFindingsRequest{
		DeploymentSlug: deployment, Status: []string{q.Status}, Severities: []string{q.Severity}, PageSize: &size,
	}
	return func(ctx context.Context) error {
		answer, err := findings.ListFindings(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), request)
		if err == nil && len(answer.GetFindings()) != q.size() {
			err = fmt.Errorf("ListFindings: got %d findings, want %d", len(answer.GetFindings()), q.size())
		}
		return err
	}
}
