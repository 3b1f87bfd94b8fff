package export_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/exportfile"
)

// TestDownload reads parts of a file: over HTTP by range, over gRPC by offset.
func TestDownload(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seed(t, s)
		e := export(t, s, s.Tenant, s.Token, ndjson)
		size := len(e.text)
		tag := `"` + e.sha256 + `"`
		for name, c := range map[string]struct {
			method string
			header []string
			status int
			body   string
			told   string
		}{
			"whole":           {"GET", nil, 200, e.text, ""},
			"head":            {"HEAD", nil, 200, "", ""},
			"a part":          {"GET", []string{"Range", "bytes=5-9"}, 206, e.text[5:10], fmt.Sprintf("bytes 5-9/%d", size)},
			"the rest":        {"GET", []string{"Range", "bytes=100-", "If-Range", tag}, 206, e.text[100:], fmt.Sprintf("bytes 100-%d/%d", size-1, size)},
			"the end":         {"GET", []string{"Range", "bytes=-7"}, 206, e.text[size-7:], fmt.Sprintf("bytes %d-%d/%d", size-7, size-1, size)},
			"of another file": {"GET", []string{"Range", "bytes=100-", "If-Range", `"other"`}, 200, e.text, ""},
			"after the end":   {"GET", []string{"Range", fmt.Sprintf("bytes=%d-", size)}, 416, "", fmt.Sprintf("bytes */%d", size)},
			"known":           {"GET", []string{"If-None-Match", tag}, 304, "", ""},
			"many parts":      {"GET", []string{"Range", "bytes=0-1,4-5"}, 200, e.text, ""},
			"head of a part":  {"HEAD", []string{"Range", "bytes=5-9"}, 206, "", fmt.Sprintf("bytes 5-9/%d", size)},
			"an unknown unit": {"GET", []string{"Range", "rows=1-2"}, 200, e.text, ""},
			"a false range":   {"GET", []string{"Range", "bytes=9-5"}, 200, e.text, ""},
			"more than all":   {"GET", []string{"Range", fmt.Sprintf("bytes=1-%d", size+9)}, 206, e.text[1:], fmt.Sprintf("bytes 1-%d/%d", size-1, size)},
			"no end":          {"GET", []string{"Range", "bytes=-0"}, 416, "", fmt.Sprintf("bytes */%d", size)},
			"for gzip":        {"GET", []string{"Accept-Encoding", "gzip"}, 200, e.text, ""},
		} {
			got := s.Do(t, s.Token, c.method, e.url, "", c.header...)
			if got.Status == 416 { // as all errors
				if got.Header.Get("Content-Type") != "application/json" || got.Header.Get("ETag") != "" || !strings.Contains(got.Body, `"code":`) {
					t.Errorf("%s: %v %s", name, got.Header, got.Body)
				}
				got.Body = ""
			}
			if got.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s: compressed as %s", name, got.Header.Get("Content-Encoding"))
			}
			if got.Status != c.status || got.Body != c.body || got.Header.Get("Content-Range") != c.told {
				t.Errorf("%s: %d %s, %d bytes: %.100s", name, got.Status, got.Header.Get("Content-Range"), len(got.Body), got.Body)
			}
			if got.Status == 200 && (got.Header.Get("ETag") != tag || got.Header.Get("Content-Type") != "application/x-ndjson" ||
				!strings.Contains(got.Header.Get("Content-Disposition"), ".ndjson")) {
				t.Errorf("%s: headers %v", name, got.Header)
			}
		}
		client := findingsv1.NewExportsServiceClient(s.Conn)
		for _, offset := range []int64{0, 100, int64(size) - 1, int64(size)} {
			if got, err := readFile(s.Context(t, s.Token), client, s.DeploymentID, 1, offset); err != nil || got != e.text[offset:] {
				t.Errorf("from %d: %d bytes, %v", offset, len(got), err)
			}
		}
		if _, err := readFile(s.Context(t, s.Token), client, s.DeploymentID, 1, int64(size)+1); status.Code(err) != codes.InvalidArgument {
			t.Errorf("after the end: %v", err)
		}
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Export.Update().SetExpiresAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Body(t, s.Token, http.MethodGet, e.url, "", http.StatusNotFound)
		if err := exportfile.Purge(t.Context(), s.Store); err != nil {
			t.Fatal(err)
		}
		if n := s.Store.Reader.Export.Query().CountX(s.System(t)) + s.Store.Reader.ExportChunk.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d rows of an expired export are left", n)
		}
	})
}

// readFile reads a file over gRPC.
func readFile(ctx context.Context, client findingsv1.ExportsServiceClient, deploymentID, exportID, offset int64) (string, error) {
	stream, err := client.DownloadExport(ctx, &findingsv1.DownloadExportRequest{DeploymentId: deploymentID, ExportId: exportID, Offset: offset})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		text.Write(message.GetChunk())
	}
}

// TestCallers: tasks and files belong to the caller who started the export. Nobody else learns whether they exist.
func TestCallers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", []byte(code))
		token := start(t, s, s.Tenant, s.Token, ndjson)
		_, result := task(t, s, s.Token, token)
		var told struct{ DownloadUrl string }
		unmarshal(t, result, &told)
		path := strings.TrimPrefix(told.DownloadUrl, s.Config.PublicURL)
		rival := s.AddTenant(t, "rival")
		colleague := s.AddUser(t, s.Tenant, "colleague@acme.test", access.RoleAdmin)
		unknown := s.Body(t, s.Token, http.MethodGet, "/api/tasks/v2/x.y.z", "", http.StatusNotFound)
		for name, credential := range map[string]string{"another deployment": rival.Token, "a colleague": colleague} {
			if got := s.Body(t, credential, http.MethodGet, "/api/tasks/v2/"+token, "", http.StatusNotFound); got != unknown {
				t.Errorf("the task of %s: %s", name, got)
			}
			s.Body(t, credential, http.MethodGet, path, "", http.StatusNotFound)
		}
		s.Body(t, "", http.MethodGet, path, "", http.StatusUnauthorized)
		s.Body(t, "", http.MethodGet, "/api/tasks/v2/"+token, "", http.StatusUnauthorized)
		foreign := strings.Replace(path, fmt.Sprintf("deployments/%d/", s.DeploymentID), fmt.Sprintf("deployments/%d/", rival.DeploymentID), 1)
		s.Body(t, rival.Token, http.MethodGet, foreign, "", http.StatusNotFound)
		if forged := token[:len(token)-4] + "AAAA"; s.Body(t, s.Token, http.MethodGet, "/api/tasks/v2/"+forged, "", http.StatusNotFound) != unknown {
			t.Error("a forged token has its own error")
		}
		body := s.Body(t, s.Token, http.MethodGet, "/api/tasks/v2/"+token, "", http.StatusOK)
		apitest.Golden(t, "task_completed", sizes.ReplaceAllString(strings.ReplaceAll(times.ReplaceAllString(body, "T"), fileHash(body), "H"), `$1:\"N\"`))
		same, err := platformv1.NewTasksServiceClient(s.Conn).GetTaskResult(s.Context(t, s.Token), &platformv1.GetTaskResultRequest{TaskTokenJwt: token})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, same, body)
	})
}

// TestTeams: an export has what its caller sees, also after the caller's teams change.
func TestTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", []byte(code))
		s.Upload(t, "acme/api", "main", []byte(code))
		member := s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)
		var team *ent.Team
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) (err error) {
			if team, err = tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx); err != nil {
				return err
			}
			who := tx.User.Query().Where(user.Email("member@acme.test")).OnlyIDX(ctx)
			return errors.Join(
				tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetUserID(who).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx),
				tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(tx.Project.Query().Where(project.Name("acme/web")).OnlyIDX(ctx)).SetCreatedAt(1).Exec(ctx))
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"CSV", "NDJSON", "SARIF"} {
			body := `{"format":"EXPORT_FORMAT_` + format + `"}`
			if e := export(t, s, s.Tenant, member, body); e.rows != 3 || strings.Contains(e.text, "acme/api") || !strings.Contains(e.text, "acme/web") {
				t.Errorf("%s of a member: %d rows: %s", format, e.rows, e.text)
			}
			if e := export(t, s, s.Tenant, s.Token, body); e.rows != 6 {
				t.Errorf("%s of an administrator: %d rows", format, e.rows)
			}
		}
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.TeamMember.Delete().Exec(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if e := export(t, s, s.Tenant, member, `{}`); e.rows != 0 {
			t.Errorf("a former member: %d rows", e.rows)
		}
	})
}

// TestLostAccess: an export fails if its caller loses the access before it is written, and tells so.
func TestLostAccess(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", []byte(code))
		value := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly, Scopes: []access.Scope{access.ScopeWebAPI}})
		started := start(t, s, s.Tenant, value, `{}`)
		if status, _ := task(t, s, value, started); status != "TASK_STATUS_COMPLETED" {
			t.Errorf("a reader's export: %s", status)
		}
		// The queue reads the role when the job runs: a token without the scope of the API reads nothing.
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Token.Update().SetScopes([]string{"agent"}).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := access.AsReader(t.Context(), s.Store, s.DeploymentID, access.KindToken, 1); status.Code(err) != codes.PermissionDenied {
			t.Errorf("without the scope: %v", err)
		}
	})
}

// sizes are the sizes of files in results.
var sizes = regexp.MustCompile(`(\\"size\\"):\\"\d+\\"`)

// fileHash is the hash of a file in a result.
func fileHash(result string) string {
	return regexp.MustCompile(`[0-9a-f]{64}`).FindString(result)
}
