package scans_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// scansOf has the projects acme/web (1) and acme/api (2), each with its scan (1 and 2), and more scans.
func scansOf(t *testing.T, s *apitest.Server, more ...seedScan) {
	t.Helper()
	s.Upload(t, "acme/web", "main", sarifOf(t, run{Tool: "gosec"}))
	s.Upload(t, "acme/api", "main", sarifOf(t, run{Tool: "gosec"}))
	seedScans(t, s, more...)
}

func TestScansV2Golden(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		scansOf(t, s, seedScan{minutes: 10, seconds: 90, status: completed, ref: "refs/heads/main", project: 1, products: sastBit | scaBit},
			seedScan{minutes: 5, status: running, ref: "refs/pull/7/merge", project: 1, diff: true})
		client := scansv1.NewScansV2ServiceClient(s.Conn)
		for id, name := range map[int64]string{3: "v2_get_completed", 4: "v2_get_running"} {
			body := s.Get(t, fmt.Sprintf("/api/v2/deployments/%d/scans/%d", s.DeploymentID, id))
			apitest.Golden(t, name, body)
			response, err := client.GetScanV2(s.Context(t, s.Token), &scansv1.GetScanV2Request{DeploymentId: s.DeploymentID, ScanId: id})
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, body)
		}
		body := s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v2/deployments/%d/projects/1/scans/list", s.DeploymentID),
			`{"filters":{"branch":"main","duration":{"min":60}}}`, http.StatusOK)
		apitest.Golden(t, "v2_list", body)
		response, err := client.ListScans(s.Context(t, s.Token), &scansv1.ListScansRequest{
			DeploymentId: s.DeploymentID, ProjectId: 1, Filters: &scansv1.ListScansFilters{Branch: "main", Duration: &scansv1.FloatRange{Min: 60}},
		})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, body)
		body = s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v2/deployments/%d/scans/retry", s.DeploymentID), `{"scanIds":["3","99",1,"x"]}`, http.StatusOK)
		apitest.Golden(t, "v2_retry", body)
		retried, err := client.RetryScans(s.Context(t, s.Token), &scansv1.RetryScansRequest{DeploymentId: s.DeploymentID, ScanIds: []string{"3", "99", "1", "x"}})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, retried, body)
	})
}

// listV2 lists scans over HTTP.
func listV2(t *testing.T, s *apitest.Server, body string) (ids []string, cursor string) {
	t.Helper()
	var got struct {
		Scans  []struct{ ID string }
		Cursor string
	}
	answer := s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v2/deployments/%d/projects/1/scans/list", s.DeploymentID), body, http.StatusOK)
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	for _, one := range got.Scans {
		ids = append(ids, one.ID)
	}
	return ids, got.Cursor
}

func TestListScansV2(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		scansOf(t, s,
			seedScan{minutes: 50, seconds: 10, status: completed, ref: "refs/heads/main", project: 1, products: sastBit},
			seedScan{minutes: 40, seconds: 60, status: failed, ref: "refs/heads/dev", project: 1, products: scaBit},
			seedScan{minutes: 30, status: running, ref: "refs/pull/7/merge", project: 1, products: sastBit | scaBit, diff: true},
			seedScan{minutes: 31 * 24 * 60, seconds: 10, status: completed, ref: "refs/heads/main", project: 1, products: sastBit},
			seedScan{minutes: 20, seconds: 10, status: completed, ref: "refs/heads/main", project: 2, products: sastBit},
		)
		for filters, want := range map[string]string{
			``:                           "1 5 4 3",
			`"branch":"main"`:            "1 3",
			`"branch":"refs/heads/dev"`:  "4",
			`"types":["SCAN_TYPE_FULL"]`: "1 4 3",
			`"types":["SCAN_TYPE_DIFF"]`: "5",
			`"types":["SCAN_TYPE_DIFF","SCAN_TYPE_FULL"]`:                                                    "1 5 4 3",
			`"types":["SCAN_TYPE_UNSPECIFIED"]`:                                                              "1 5 4 3",
			`"statuses":["SCAN_STATUS_ERROR"]`:                                                               "4",
			`"statuses":["SCAN_STATUS_ERROR","SCAN_STATUS_COMPLETED"]`:                                       "1 4 3",
			`"includeEnabledProducts":["PRODUCT_SCA"]`:                                                       "5 4",
			`"include_enabled_products":["PRODUCT_UNSPECIFIED"]`:                                             "1 5 4 3",
			`"duration":{"min":30,"max":90}`:                                                                 "4",
			`"createdSince":"0001-01-01T00:00:00Z","statuses":null,"duration":{"min":0,"max":0},"branch":""`: "1 5 4 3",
			fmt.Sprintf(`"createdSince":%q`, time.Now().Add(-45*time.Minute).UTC().Format(time.RFC3339)):     "1 5 4",
		} {
			if ids, _ := listV2(t, s, `{"cursor":"","limit":0,"filters":{`+filters+`}}`); strings.Join(ids, " ") != want {
				t.Errorf("%s: %v, want %s", filters, ids, want)
			}
		}
		var walked []string
		for cursor := ""; ; {
			ids, next := listV2(t, s, fmt.Sprintf(`{"limit":3,"cursor":%q}`, cursor))
			walked = append(walked, ids...)
			if cursor = next; cursor == "" {
				break
			}
		}
		wantList(t, "pages", walked, "1", "5", "4", "3")
		path := fmt.Sprintf("/api/v2/deployments/%d/", s.DeploymentID)
		for _, c := range []struct {
			path, body string
			want       int
		}{
			{"projects/1/scans/list", `{"limit":501}`, http.StatusBadRequest},
			{"projects/1/scans/list", `{"cursor":"x"}`, http.StatusBadRequest},
			{"projects/9/scans/list", `{}`, http.StatusNotFound},
			{"scans/retry", `{"scanIds":["1","2","3","4","5","6","7","8","9","10","11"]}`, http.StatusBadRequest},
		} {
			s.Body(t, s.Token, http.MethodPost, path+c.path, c.body, c.want)
		}
	})
}

// TestScansV2OfOthers: scans of other deployments and of hidden projects answer as absent ones.
func TestScansV2OfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		scansOf(t, s)
		mia := s.AddToken(t, s.Tenant, access.TokenSpec{UserID: memberOf(t, s, "acme/web"), Role: access.RoleMember, Scopes: []access.Scope{access.ScopeWebAPI}})
		client := scansv1.NewScansV2ServiceClient(s.Conn)
		other := s.AddTenant(t, "globex")
		for name, c := range map[string]struct {
			token                    string
			deployment, project, own int64
		}{"another deployment": {other.Token, other.DeploymentID, 2, 0}, "another team": {mia, s.DeploymentID, 2, 1}} {
			ctx := s.Context(t, c.token)
			if _, err := client.GetScanV2(ctx, &scansv1.GetScanV2Request{DeploymentId: c.deployment, ScanId: 2}); status.Code(err) != codes.NotFound {
				t.Errorf("%s gets: %v", name, err)
			}
			if _, err := client.ListScans(ctx, &scansv1.ListScansRequest{DeploymentId: c.deployment, ProjectId: c.project}); status.Code(err) != codes.NotFound {
				t.Errorf("%s lists: %v", name, err)
			}
			if c.own != 0 {
				if list, err := client.ListScans(ctx, &scansv1.ListScansRequest{DeploymentId: c.deployment, ProjectId: c.own}); err != nil || len(list.GetScans()) != 1 {
					t.Errorf("%s lists its own: %v %v", name, list, err)
				}
			}
		}
		retried, err := client.RetryScans(s.Context(t, other.Token), &scansv1.RetryScansRequest{DeploymentId: other.DeploymentID, ScanIds: []string{"2", "99"}})
		if err != nil || len(retried.GetErrors()) != 2 || retried.GetErrors()[0].GetRepoId() != "" || retried.GetErrors()[0].GetMessage() != retried.GetErrors()[1].GetMessage() {
			t.Errorf("another deployment retries: %v %v", retried, err)
		}
	})
}
