package services_test

import (
	"net/http"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestTwoCredentials: every RPC refuses a request with two Authorization headers on both transports, even if one of
// them is valid: a proxy in front may have checked the other one.
func TestTwoCredentials(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		good := "Bearer " + s.Token
		for _, rpc := range operations() {
			for _, pair := range [][]string{{good, "Bearer other"}, {"Bearer other", good}, {good, good}, {"", good}} {
				ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{"authorization": pair})
				err := call(ctx, s.Conn, rpc, dynamicpb.NewMessage(rpc.descriptor.Input()))
				if status.Code(err) != codes.Unauthenticated {
					t.Errorf("gRPC %s: %v", rpc.name, err)
				}
				if rpc.path == "" {
					continue
				}
				if got := askTwice(t, s, rpc, pair); got != http.StatusUnauthorized {
					t.Errorf("HTTP %s %s with %q: %d", rpc.method, rpc.path, pair, got)
				}
			}
		}
	})
}

func askTwice(t *testing.T, s *apitest.Server, rpc operation, credentials []string) int {
	t.Helper()
	path, _ := rpc.request(s)
	request, err := http.NewRequestWithContext(t.Context(), rpc.method, s.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header["Authorization"] = credentials
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}
