package findings_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

const (
	// memoryPages pages of memorySize findings have about 100 KB each: more than a client buffers before it reads.
	memoryPages, memorySize = 8, 100
	memoryWindow            = 1 << 16
)

// reportOfPages returns a report with findings of different content and length.
func reportOfPages() []byte {
	var results []string
	for i := range memoryPages * memorySize {
		results = append(results, fmt.Sprintf(`{"ruleId":"R%d","message":{"text":"%s"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"f%d.go"},"region":{"startLine":%d}}}]}`,
			i%7, strings.Repeat(fmt.Sprintf("finding %d, ", i), 60+i%40), i, i+1))
	}
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x"}},"results":[` + strings.Join(results, ",") + `]}]}`)
}

// knownPages holds the pages of a list, as read without concurrent requests.
type knownPages struct {
	*apitest.Server
	wire []*findingsv1.ListFindingsResponse
	json []string
}

func request(page int) *findingsv1.ListFindingsRequest {
	size := int64(memorySize)
	return &findingsv1.ListFindingsRequest{DeploymentSlug: "acme", Page: int64(page), PageSize: &size}
}

func knowPages(t *testing.T, s *apitest.Server) *knownPages {
	t.Helper()
	s.Upload(t, "acme/web", "main", reportOfPages())
	k := &knownPages{Server: s}
	for page := range memoryPages {
		answer, err := findingsv1.NewFindingsServiceClient(s.Conn).ListFindings(s.Context(t, s.Token), request(page))
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.GetFindings()) != memorySize || proto.Size(answer) <= memoryWindow {
			t.Fatalf("page %d: %d findings in %d bytes", page, len(answer.GetFindings()), proto.Size(answer))
		}
		body := s.Get(t, fmt.Sprintf("%s?page_size=%d&page=%d", listPath, memorySize, page))
		apitest.Same(t, answer, body)
		k.wire, k.json = append(k.wire, answer), append(k.json, body)
	}
	return k
}

// ask requests pages in turn over HTTP and gRPC, with and without compression, and compares them with the known pages.
func (k *knownPages) ask(t *testing.T, ctx context.Context, times int) error {
	client := findingsv1.NewFindingsServiceClient(k.Conn)
	for i := range times {
		page := i % memoryPages
		if i%5 == 4 {
			body := k.Get(t, fmt.Sprintf("%s?page_size=%d&page=%d", listPath, memorySize, page))
			if body != k.json[page] {
				return fmt.Errorf("page %d over HTTP is another one", page)
			}
			continue
		}
		var options []grpc.CallOption
		if i%3 == 2 {
			options = append(options, grpc.UseCompressor(gzip.Name))
		}
		answer, err := client.ListFindings(ctx, request(page), options...)
		if err != nil {
			return err
		}
		if !proto.Equal(answer, k.wire[page]) {
			return fmt.Errorf("page %d over gRPC is another one", page)
		}
	}
	return nil
}

// Concurrent requests for different pages return the requested pages.
func TestAnswersDoNotShareMemory(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		k := knowPages(t, s)
		group, ctx := errgroup.WithContext(s.Context(t, s.Token))
		for range 12 {
			group.Go(func() error { return k.ask(t, ctx, 40) })
		}
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// A response that a slow client has not read yet stays intact while other requests are served. One client in four
// disconnects instead.
func TestAnswerWaitsForItsReader(t *testing.T) {
	s := apitest.Start(t, nil)
	k := knowPages(t, s)
	conn, err := grpc.NewClient(s.Addresses.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(memoryWindow), grpc.WithStaticConnWindowSize(1<<26))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for round := range 3 {
		var streams [2 * memoryPages]grpc.ClientStream
		var cancels [len(streams)]context.CancelFunc
		for i := range streams {
			ctx, cancel := context.WithCancel(s.Context(t, s.Token))
			defer cancel()
			cancels[i] = cancel
			if streams[i], err = conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, findingsv1.FindingsService_ListFindings_FullMethodName); err != nil {
				t.Fatal(err)
			}
			if err := streams[i].SendMsg(request(i % memoryPages)); err != nil {
				t.Fatal(err)
			}
			if err := streams[i].CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
		for i, stream := range streams {
			if _, err := stream.Header(); err != nil { // headers arrive together with the first window of the response
				t.Fatal(err)
			}
			if i%4 == 3 {
				cancels[i]()
			}
		}
		if err := k.ask(t, s.Context(t, s.Token), 3*memoryPages); err != nil {
			t.Error(err)
		}
		for i, stream := range streams {
			if i%4 == 3 {
				continue
			}
			answer := &findingsv1.ListFindingsResponse{}
			if err := stream.RecvMsg(answer); err != nil {
				t.Errorf("round %d, stream %d: %v", round, i, err)
			} else if !proto.Equal(answer, k.wire[i%memoryPages]) {
				t.Errorf("round %d, stream %d: page %d is another one", round, i, i%memoryPages)
			}
		}
	}
}
