package nodestest

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/egress/egresstest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// addTenant creates a second deployment in the database of running nodes.
func addTenant(t testing.TB, database, keyFile, slug string) apitest.Tenant {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Database: database, MaxOpen: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	other := (&apitest.Server{Store: st}).AddTenant(t, slug)
	keyring, err := secret.Open(keyFile, false)
	if err == nil {
		_, err = audit.Open(t.Context(), st, keyring, slog.New(slog.DiscardHandler)) // creates its audit trail
	}
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// post requires a status of 200.
func post(t testing.TB, base, token, path string, body []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %d %s, %v", path, response.StatusCode, text, err)
	}
}

// TestHostileReceiverOfAnotherDeployment: a receiver answers 101 and keeps its sockets open. On two nodes it does
// not delay the messages of another deployment, and nodes can stop.
func TestHostileReceiverOfAnotherDeployment(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	binary, database, key := binary(t), pgtest.NewDatabase(t), filepath.Join(t.TempDir(), "palisade.key")
	nodes := make([]*node, 2)
	for i := range nodes {
		nodes[i] = newNode(t, fmt.Sprintf("node%d", i+1), binary, database, key)
		nodes[i].start()
	}
	acme, other := apitest.Tenant{Slug: "acme", DeploymentID: 1, Token: token}, addTenant(t, database, key, "other")
	hostile, to := egresstest.Start(t, egresstest.Upgrade, egresstest.Options{}), newReceiver(t)
	base := func(i int) string { return "http://" + nodes[i%len(nodes)].http }
	for of, url := range map[apitest.Tenant]string{acme: hostile.URL, other: to.URL} {
		rule := fmt.Appendf(nil, `{"notificationRule":{"name":"all","channel":"webhook","is_enabled":true,"config":{"url":%q}}}`, url)
		post(t, base(0), of.Token, fmt.Sprintf("/api/agent/deployments/%d/actions", of.DeploymentID), rule)
	}
	upload := func(i int, of apitest.Tenant, project string) {
		path := "/api/v1/deployments/" + of.Slug + "/reports?" + url.Values{"project": {project}, "ref": {"main"}}.Encode()
		post(t, base(i), of.Token, path, report(project))
	}
	const reports = 10
	// Longer than one run of a sender (5 s), so that each node has had a run with messages to the hostile receiver.
	for i := range 15 {
		upload(i, acme, fmt.Sprintf("acme/p%d", i))
		time.Sleep(time.Second)
	}
	apitest.Eventually(t, "the hostile receiver is called", func() bool { return hostile.Calls() > 0 })
	begun := time.Now()
	for i := range reports {
		upload(i, other, fmt.Sprintf("other/p%d", i))
	}
	apitest.Eventually(t, "the other deployment gets its messages", func() bool {
		to.mu.Lock()
		defer to.mu.Unlock()
		return len(to.got) >= 2*reports // the findings and the end of each scan
	})
	t.Logf("%d messages of the other deployment arrived after %s, during %d calls of the hostile receiver",
		2*reports, time.Since(begun).Round(time.Millisecond), hostile.Calls())
	for _, n := range nodes {
		stopping := time.Now()
		n.stop()
		if took := time.Since(stopping); took > time.Minute {
			t.Errorf("%s ended after %s", n.name, took)
		}
	}
	hostile.RequireClosed(t)
}
