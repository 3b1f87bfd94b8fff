package supplychain_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// Credentials that must not leak. They share a prefix, so that one search finds all.
const (
	canary     = "cAnArY7f3e1"
	canaryUser = canary + "user"
	canaryPass = canary + "password"
	canaryNPM  = canary + "token"
	canaryARN  = "arn:aws:iam::123456789012:role/" + canary
)

// TestCanaries sends credentials in all requests, valid and invalid. Then it searches for them in all responses, logs,
// traces, metrics and stored data.
func TestCanaries(t *testing.T) {
	databases := map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "postgres": func(t *testing.T) string { return storetest.Postgres(t) },
	}
	for name, database := range databases {
		if !testrun.On(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			spans := startCollector(t)
			log := &recorder{}
			places := map[string][]byte{}
			t.Run("server", func(t *testing.T) {
				url := database(t)
				log.TB = t
				s := caller{apitest.Start(log, func(c *config.Config) { c.Database, c.LogLevel = url, "debug" })}
				for i, answer := range sendCanaries(t, s) {
					places[fmt.Sprintf("answer %d", i)] = []byte(answer)
				}
				places["metrics"] = []byte(scrape(t, s))
				places["audit list"] = []byte(s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?limit=500", s.DeploymentID)))
				dumpTables(t, s, places)
				readFiles(t, s.Config.Data, places) // a write-ahead log exists while the server runs
			})
			places["log"] = log.bytes()
			places["spans"] = spans.bytes()
			for _, needed := range []string{"log", "spans", "metrics", "audit list", "table package_manager_configs", "table audit_entries"} {
				if len(places[needed]) == 0 {
					t.Errorf("nothing was recorded of %s", needed)
				}
			}
			search(t, places)
		})
	}
}

// search reports each place that contains a canary in plain text, hexadecimal or base64.
func search(t *testing.T, places map[string][]byte) {
	t.Helper()
	forms := [][]byte{[]byte(canary), []byte(hex.EncodeToString([]byte(canary)))}
	for shift := range 3 {
		// Compare only the characters that do not depend on the surrounding bytes.
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, shift), canary...))
		forms = append(forms, bytes.ToLower([]byte(encoded[4:12])))
	}
	for place, content := range places {
		content := bytes.ToLower(content)
		for _, form := range forms {
			if at := bytes.Index(content, bytes.ToLower(form)); at >= 0 {
				t.Errorf("a credential is in %s: …%q…", place, content[max(0, at-80):min(len(content), at+40)])
			}
		}
	}
}

// sendCanaries sends the credentials and returns all answers.
func sendCanaries(t *testing.T, s caller) (answers []string) {
	t.Helper()
	do := func(token, method, path, body string, header ...string) {
		answer := s.Do(t, token, method, path, body, header...)
		answers = append(answers, fmt.Sprint(answer.Status, answer.Header, answer.Body))
	}
	bodies := goodCanaries()
	for _, body := range bodies {
		do(s.Token, http.MethodPost, s.path(), body)
		do(s.Token, http.MethodPost, s.path(), body) // the name is taken
	}
	if n := s.Store.Reader.PackageManagerConfig.Query().CountX(s.System(t)); n != len(bodies) {
		t.Fatalf("%d configs were stored, want %d", n, len(bodies))
	}
	for i, body := range bodies {
		do(s.Token, http.MethodPatch, fmt.Sprintf("%s/%d", s.path(), i+1), body)
		do(s.Token, http.MethodPatch, fmt.Sprintf("%s/%d", s.path(), len(bodies)-i), body) // another kind, or a taken name
	}
	other := s.AddTenant(t, "umbrella")
	member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
	for _, body := range append(badCanaries(), bodies...) {
		for _, token := range []string{s.Token, member, other.Token, "", canaryNPM} {
			do(token, http.MethodPost, s.path(), body)
			do(token, http.MethodPatch, s.path()+"/1", body)
		}
		do(s.Token, http.MethodPatch, s.path()+"/999", body)
		do(s.Token, http.MethodPut, s.path(), body)
		do(s.Token, http.MethodPost, s.path()+"/", body, "Content-Type", "text/plain")
	}
	do(s.Token, http.MethodGet, s.path()+"?packageManagerConfigForInsert.maven.password="+canaryPass, "")
	do(s.Token, http.MethodGet, s.path(), "")
	do(s.Token, http.MethodDelete, s.path()+"/1", goodCanaries()[0])
	return append(answers, grpcCanaries(t, s, other, member)...)
}

// goodCanaries are requests with one kind of credentials each.
func goodCanaries() []string {
	config := func(name, ecosystem, credentials string) string {
		return fmt.Sprintf(`{"packageManagerConfigForInsert":{"config":{"name":%q,"url":"https://repo.acme.test/%s","requiresAuth":true,"ecosystem":%q},%s}}`,
			name, name, ecosystem, credentials)
	}
	pair := fmt.Sprintf(`{"username":%q,"password":%q}`, canaryUser, canaryPass)
	return []string{
		config("maven", "maven", `"maven":`+pair), config("pypi", "pypi", `"pypi":`+pair),
		config("aws", "pypi", fmt.Sprintf(`"codeArtifact":{"assumeRoleArn":%q}`, canaryARN)),
		config("npm", "npm", fmt.Sprintf(`"npm":{"token":%q}`, canaryNPM)), config("npm-basic", "npm", `"npm":{"basicAuth":`+pair+`}`),
	}
}

// badCanaries are invalid, or have credentials in wrong places.
func badCanaries() []string {
	insert := func(credentials string) string {
		return `{"packageManagerConfigForInsert":{"config":{"name":"bad","url":"https://repo.acme.test","requiresAuth":true,"ecosystem":"npm"},` + credentials + `}}`
	}
	long := strings.Repeat(canaryPass, 500)
	arn := strings.ReplaceAll(canaryARN, "role", "user")
	return []string{
		insert(`"npm":{"token":"` + canaryNPM), insert(`"npm":{"token":` + canaryNPM + `}`), insert(`"npm":{"token":"` + canaryNPM + `\x"}`),
		canaryNPM, `{"` + canaryNPM, `{"packageManagerConfigForInsert":{"npm":{"token":"` + canaryNPM + "\x00" + `"}}}`,
		insert(`"npm":"` + canaryNPM + `"`), insert(`"npm":["` + canaryNPM + `"]`), insert(`"maven":"` + canaryPass + `"`), insert(`"pypi":"` + canaryPass + `"`),
		insert(`"codeArtifact":"` + canaryARN + `"`), insert(`"npm":{"basicAuth":"` + canaryPass + `"}`), insert(`"npm":{"token":["` + canaryNPM + `"]}`),
		insert(`"npm":{"token":{"` + canaryNPM + `":"` + canaryNPM + `"}}`), insert(`"npm":{"tokn":"` + canaryNPM + `"}`),
		insert(`"npm":{"token":"` + canaryNPM + "\xff" + `"}`), insert(`"npm":{"token":"` + canaryNPM + `","basicAuth":{"username":"` + canaryUser + `","password":"x"}}`),
		insert(`"npm":{"basicAuth":{"username":"` + canaryUser + `"}}`), insert(`"npm":{"basicAuth":{"password":"` + canaryPass + `"}}`),
		insert(`"codeArtifact":{"assumeRoleArn":"` + arn + `"}`), insert(`"maven":{"username":"` + canaryUser + `","password":"` + canaryPass + `"}`),
		insert(`"maven":{"username":"` + long + `","password":"` + long + `"},"npm":{"token":"` + long + `"}`),
		`{"packageManagerConfigForInsert":{"config":{"name":"bad","url":"https://` + canaryUser + `:` + canaryPass + `@repo.acme.test"}}}`,
		`{"packageManagerConfigForInsert":{"config":{"name":"bad","url":"https://repo.acme.test/?_authToken=` + canaryNPM + `"}}}`,
		`{"packageManagerConfigForInsert":{"config":{"name":"bad","url":"https://` + canaryUser + `:` + canaryPass + `@acme.test","registryType":"REGISTRY_TYPE_MALWARE_FIREWALL"}}}`,
	}
}

// grpcCanaries sends the credentials over gRPC and returns all answers and errors with their details.
func grpcCanaries(t *testing.T, s caller, other apitest.Tenant, member string) (answers []string) {
	t.Helper()
	client := supplychainv1.NewPackageManagerConfigurationsServiceClient(s.Conn)
	pair := &supplychainv1.NpmCredentials_BasicAuth{Username: canaryUser, Password: canaryPass}
	for _, given := range []*supplychainv1.PackageManagerConfigForInsert{
		{Maven: &supplychainv1.MavenCredentials{Username: canaryUser, Password: canaryPass}},
		{Pypi: &supplychainv1.PypiCredentials{Username: canaryUser, Password: canaryPass}},
		{CodeArtifact: &supplychainv1.CodeArtifactCredentials{AssumeRoleArn: canaryARN}},
		{CodeArtifact: &supplychainv1.CodeArtifactCredentials{AssumeRoleArn: canaryNPM}},
		{Npm: &supplychainv1.NpmCredentials{Token: canaryNPM}}, {Npm: &supplychainv1.NpmCredentials{BasicAuth: pair}},
		{Npm: &supplychainv1.NpmCredentials{Token: canaryNPM, BasicAuth: pair}},
		{Npm: &supplychainv1.NpmCredentials{Token: canaryNPM + "\x00"}},
		{Npm: &supplychainv1.NpmCredentials{Token: strings.Repeat(canaryNPM, 1000)}},
	} {
		given.Config = &supplychainv1.PackageManagerConfigInput{
			Name: proto.String("grpc"), Url: proto.String("https://repo.acme.test"), RequiresAuth: proto.Bool(true), Ecosystem: proto.String("npm"),
		}
		for _, token := range []string{s.Token, member, other.Token, "", canaryNPM} {
			created, err := client.PostPackageManagerAuthCredentials(s.Context(t, token),
				&supplychainv1.PostPackageManagerAuthCredentialsRequest{DeploymentId: s.DeploymentID, PackageManagerConfigForInsert: given})
			answers = append(answers, prototext.Format(created), prototext.Format(status.Convert(err).Proto()))
			updated, err := client.UpdatePackageManagerAuthCredentials(s.Context(t, token),
				&supplychainv1.UpdatePackageManagerAuthCredentialsRequest{DeploymentId: s.DeploymentID, PackageManagerConfigId: 4, PackageManagerConfigForInsert: given})
			answers = append(answers, prototext.Format(updated), prototext.Format(status.Convert(err).Proto()))
		}
	}
	list, err := client.GetPackageManagerAuthConfigs(s.Context(t, s.Token), &supplychainv1.GetPackageManagerAuthConfigsRequest{DeploymentId: s.DeploymentID})
	return append(answers, prototext.Format(list), prototext.Format(status.Convert(err).Proto()))
}

func scrape(t *testing.T, s caller) string {
	t.Helper()
	response, err := http.Get("http://" + s.Addresses.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return body.String()
}

// dumpTables reads each column of each table.
func dumpTables(t *testing.T, s caller, places map[string][]byte) {
	t.Helper()
	db, _ := s.Store.DB()
	tables := `SELECT name FROM sqlite_schema WHERE type = 'table'`
	if s.Store.Postgres() {
		tables = `SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public'`
	}
	for _, table := range rows(t, db, tables) {
		query := `SELECT * FROM ` + table
		if s.Store.Postgres() {
			query = `SELECT t::text FROM ` + table + ` t`
		}
		places["table "+table] = []byte(strings.Join(rows(t, db, query), "\n"))
	}
}

// rows reads all columns of all rows as texts.
func rows(t *testing.T, db *sql.DB, query string) (out []string) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for found.Next() {
		values := make([]sql.RawBytes, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := found.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		out = append(out, string(bytes.Join(bytesOf(values), []byte(" "))))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func bytesOf(values []sql.RawBytes) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// readFiles reads each file of the data directory.
func readFiles(t *testing.T, dir string, places map[string][]byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		places["file "+entry.Name()] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// recorder records the server's log.
type recorder struct {
	testing.TB
	mu   sync.Mutex
	text bytes.Buffer
}

// Log records a line. It does not write to the test's output, because it would dominate it.
func (r *recorder) Log(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(&r.text, args...)
}

func (r *recorder) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.text.Bytes())
}

// collector receives the spans that a server exports by OTLP.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	mu   sync.Mutex
	text bytes.Buffer
}

// Export stores spans as text.
func (c *collector) Export(_ context.Context, r *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.WriteString(prototext.Format(r))
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func (c *collector) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.text.Bytes())
}

// startCollector makes the test's servers export their spans here.
func startCollector(t *testing.T) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, c := grpc.NewServer(), &collector{}
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	return c
}
