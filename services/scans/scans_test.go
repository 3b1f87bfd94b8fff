package scans_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// seedScan is one scan, minutes ago.
type seedScan struct {
	minutes, seconds int64 // how long ago it began, and its duration; 0 seconds: it is running
	status           scansv1.ScanStatus
	ref              string
	project          int64
	products         int32
	diff             bool
}

func seedScans(t *testing.T, s *apitest.Server, list ...seedScan) {
	t.Helper()
	meta, err := proto.Marshal(&scansv1.ScanMeta{On: "push", Branch: "refs/heads/main", CommitTitle: `quotes " and <b>`})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		for _, one := range list {
			start := store.Micros(time.Now().Add(-time.Duration(one.minutes) * time.Minute))
			row := tx.Scan.Create().SetProjectID(one.project).SetRef(one.ref).SetCommit("3f2a9c1").SetStatus(one.status.String()).
				SetProducts(one.products).SetIsFullScan(!one.diff).SetTotalCount(6).SetCodeCount(3).SetSupplyChainCount(2).SetSecretsCount(1).
				SetExitCode(1).SetMeta(meta).SetStats(map[string]any{"created": 6}).SetStartedAt(start)
			if one.seconds > 0 {
				row.SetCompletedAt(start + one.seconds*1e6)
			}
			if err := row.Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	completed = scansv1.ScanStatus_SCAN_STATUS_COMPLETED
	running   = scansv1.ScanStatus_SCAN_STATUS_RUNNING
	failed    = scansv1.ScanStatus_SCAN_STATUS_ERROR
	sastBit   = 1 << scansv1.Product_PRODUCT_SAST
	scaBit    = 1 << scansv1.Product_PRODUCT_SCA
)

func search(t *testing.T, s *apitest.Server, body string) (ids []string, cursor string) {
	t.Helper()
	answer := s.Do(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", s.DeploymentID), body)
	if answer.Status != 200 {
		t.Fatalf("search %s: %d %s", body, answer.Status, answer.Body)
	}
	var got struct {
		Scans  []struct{ ID string }
		Cursor string
	}
	if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
		t.Fatal(err)
	}
	for _, one := range got.Scans {
		ids = append(ids, one.ID)
	}
	return ids, got.Cursor
}

func TestScanGolden(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedScans(t, s, seedScan{minutes: 10, seconds: 90, status: completed, ref: "refs/heads/main", project: 7, products: sastBit | scaBit},
			seedScan{minutes: 5, status: running, ref: "refs/pull/7/merge", project: 7, diff: true})
		client := scansv1.NewScansServiceClient(s.Conn)
		for id, name := range map[int64]string{1: "get_completed", 2: "get_running"} {
			body := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/scan/%d", s.DeploymentID, id))
			apitest.Golden(t, name, body)
			response, err := client.GetScan(s.Context(t, s.Token), &scansv1.GetScanRequest{DeploymentId: s.DeploymentID, ScanId: id})
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, body)
		}
		answer := s.Do(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", s.DeploymentID), "")
		apitest.Golden(t, "search", answer.Body)
		response, err := client.SearchScans(s.Context(t, s.Token), &scansv1.SearchScansRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, answer.Body)
	})
}

func TestSearchScansFilters(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedScans(t, s,
			seedScan{minutes: 50, seconds: 10, status: completed, ref: "refs/heads/main", project: 1, products: sastBit},
			seedScan{minutes: 40, seconds: 60, status: failed, ref: "refs/heads/dev", project: 1, products: scaBit},
			seedScan{minutes: 30, status: running, ref: "refs/pull/7/merge", project: 2, products: sastBit | scaBit, diff: true},
			seedScan{minutes: 31 * 24 * 60, seconds: 10, status: completed, ref: "refs/heads/main", project: 1, products: sastBit},
		)
		for body, want := range map[string]string{
			``:                                   "3 2 1",
			`{}`:                                 "3 2 1",
			`{"branch":"main"}`:                  "1",
			`{"branch":"refs/heads/dev"}`:        "2",
			`{"is_full_scan":true}`:              "2 1",
			`{"is_full_scan":1}`:                 "2 1",
			`{"is_full_scan":"true"}`:            "2 1",
			`{"repository_id":"2"}`:              "3",
			`{"repository_id":1}`:                "2 1",
			`{"statuses":["SCAN_STATUS_ERROR"]}`: "2",
			`{"statuses":"SCAN_STATUS_RUNNING"}`: "3",
			`{"statuses":["SCAN_STATUS_ERROR","SCAN_STATUS_COMPLETED"]}`: "2 1",
			`{"products":["PRODUCT_SCA"]}`:                               "3 2",
			`{"products":["PRODUCT_UNSPECIFIED"]}`:                       "3 2 1",
			`{"total_time":{"min":30}}`:                                  "2",
			`{"total_time":{"min":0,"max":30}}`:                          "1",
			`{"since":"2000-01-01T00:00:00Z"}`:                           "3 2 1",
			`{"repository_id":0,"is_full_scan":false,"since":"0001-01-01T00:00:00Z","total_time":{"min":0,"max":0},"statuses":null,"branch":"","cursor":"","limit":0}`: "3 2 1",
			fmt.Sprintf(`{"since":%q}`, time.Now().Add(-45*time.Minute).UTC().Format(time.RFC3339)):                                                                    "3 2",
		} {
			if ids, _ := search(t, s, body); strings.Join(ids, " ") != want {
				t.Errorf("%s: %v, want %s", body, ids, want)
			}
		}
	})
}

// TestScannersDuration: where the scanner told its duration, lists show it and filter by it.
func TestScannersDuration(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedScans(t, s, seedScan{minutes: 3, seconds: 90, status: completed, ref: "refs/heads/main", project: 1},
			seedScan{minutes: 2, seconds: 90, status: completed, ref: "refs/heads/main", project: 1},
			seedScan{minutes: 1, seconds: 90, status: completed, ref: "refs/heads/main", project: 1})
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			for id, told := range map[int64]any{2: map[string]any{"total_time": 4.5, "findings": 3}, 3: map[string]any{"total_time": "soon"}} {
				if err := tx.Scan.UpdateOneID(id).SetStats(map[string]any{"created": 6, "scanner": told}).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for body, want := range map[string]string{
			`{"total_time":{"max":5}}`:            "2",
			`{"total_time":{"min":4.5,"max":60}}`: "2",
			`{"total_time":{"min":5}}`:            "3 1",
		} {
			if ids, _ := search(t, s, body); strings.Join(ids, " ") != want {
				t.Errorf("%s: %v, want %s", body, ids, want)
			}
		}
		request := &scansv1.SearchScansRequest{DeploymentId: s.DeploymentID}
		ctx := metadata.AppendToOutgoingContext(s.Context(t, s.Token), "prefer", "numbers")
		response, err := scansv1.NewScansServiceClient(s.Conn).SearchScans(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		defer wrongDurations(t, s)
		for i, want := range []float64{90, 4.5, 90} {
			if got := response.GetScans()[i].GetTotalTime(); got != want {
				t.Errorf("scan %d took %v, want %v", i, got, want)
			}
		}
		answer := s.Do(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", s.DeploymentID), "", "Prefer", "numbers")
		apitest.Same(t, response, answer.Body)
		if !strings.Contains(answer.Body, `"exit_code":1,"findings_counts":{"total":6,"code":3,"supply_chain":2,"secrets":1}`) ||
			!strings.Contains(answer.Body, `"id":"1"`) || answer.Header.Get("Preference-Applied") != "numbers" {
			t.Errorf("%v %s", answer.Header, answer.Body)
		}
		shown := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/scan/2", s.DeploymentID))
		if !strings.Contains(shown, `"findings":3,"scanner":{"findings":3,"total_time":4.5},"total_time":4.5`) {
			t.Errorf("%s", shown)
		}
	})
}

// wrongDurations requires durations that cannot be true to count as not told.
func wrongDurations(t *testing.T, s *apitest.Server) {
	t.Helper()
	for _, told := range []float64{-1, 1e308, 30*24*3600 + 1} {
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Scan.UpdateOneID(2).SetStats(map[string]any{"scanner": map[string]any{"total_time": told, "findings": 3}}).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		response, err := scansv1.NewScansServiceClient(s.Conn).SearchScans(s.Context(t, s.Token), &scansv1.SearchScansRequest{
			DeploymentId: s.DeploymentID, TotalTime: &scansv1.FloatRange{Min: 89, Max: 91},
		})
		if err != nil || len(response.GetScans()) != 3 || response.GetScans()[1].GetTotalTime() != 90 {
			t.Errorf("told %v: %v %v", told, response, err)
		}
		shown := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/scan/2", s.DeploymentID))
		if !strings.Contains(shown, `"findings":3,"scanner":{"findings":3}`) || strings.Contains(shown, "total_time") {
			t.Errorf("told %v: %s", told, shown)
		}
	}
}

func TestSearchScansPaging(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		list := make([]seedScan, 7)
		for i := range list {
			list[i] = seedScan{minutes: 5, seconds: 1, status: completed, ref: "refs/heads/main", project: 1, products: sastBit}
		}
		seedScans(t, s, list...)
		all, _ := search(t, s, "")
		var walked []string
		for cursor := ""; ; {
			ids, next := search(t, s, fmt.Sprintf(`{"limit":3,"cursor":%q}`, cursor))
			walked = append(walked, ids...)
			if cursor = next; cursor == "" {
				break
			}
		}
		if strings.Join(walked, " ") != strings.Join(all, " ") || len(all) != 7 {
			t.Errorf("walked %v, want %v", walked, all)
		}
		_, cursor := search(t, s, `{"limit":3}`)
		path := fmt.Sprintf("/api/v1/deployments/%d/scans/search", s.DeploymentID)
		for name, body := range map[string]string{
			"cursor_of_another_filter": fmt.Sprintf(`{"branch":"dev","cursor":%q}`, cursor),
			"limit_too_large":          `{"limit":501}`,
			"unknown_status":           `{"statuses":["DONE"]}`,
			"broken_body":              `{"limit":3,`,
		} {
			apitest.Golden(t, name, s.Body(t, s.Token, http.MethodPost, path, body, 400))
		}
	})
}

func TestScansOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		other := s.AddTenant(t, "umbrella")
		seedScans(t, s, seedScan{minutes: 1, seconds: 1, status: completed, ref: "refs/heads/main", project: 1})
		for path, want := range map[string]string{
			fmt.Sprintf("/api/v1/deployments/%d/scan/1", s.DeploymentID):     "deployment not found",
			"/api/v1/deployments/999/scan/1":                                 "deployment not found",
			fmt.Sprintf("/api/v1/deployments/%d/scan/1", other.DeploymentID): "scan 1 not found",
			fmt.Sprintf("/api/v1/deployments/%d/scan/2", other.DeploymentID): "scan 2 not found",
			"/api/v1/deployments/acme/scan/1":                                "",
			fmt.Sprintf("/api/v1/deployments/%d/scan/x", other.DeploymentID): "",
		} {
			answer := s.Do(t, other.Token, http.MethodGet, path, "")
			if answer.Status != 404 || want != "" && !strings.Contains(answer.Body, `"error":"`+want+`"`) {
				t.Errorf("GET %s: %d %s, want 404 %s", path, answer.Status, answer.Body, want)
			}
		}
		answer := s.Do(t, other.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", other.DeploymentID), "")
		if answer.Body != `{"scans":[],"cursor":""}` {
			t.Errorf("another tenant sees %s", answer.Body)
		}
	})
}
