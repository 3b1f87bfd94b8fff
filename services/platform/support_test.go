package platform_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/channel"
)

// helpDesk is a server with an administrator and two members.
type helpDesk struct {
	*apitest.Server
	chief, ann, bob string
}

func eachHelpDesk(t *testing.T, adjust func(*config.Config), test func(t *testing.T, s *helpDesk)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			if adjust != nil {
				adjust(c)
			}
		})
		test(t, &helpDesk{
			s, s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin),
			s.AddUser(t, s.Tenant, "ann@acme.test", access.RoleMember), s.AddUser(t, s.Tenant, "bob@acme.test", access.RoleReadOnly),
		})
	})
}

func (s *helpDesk) open(t *testing.T, who, subject, more string, want int) string {
	t.Helper()
	return s.Body(t, who, http.MethodPost, "/api/support/cases",
		fmt.Sprintf(`{"subject":%q,"description":"It does not work.","deploymentId":"%d"%s}`, subject, s.DeploymentID, more), want)
}

func (s *helpDesk) list(t *testing.T, who, query string) (raw string, cases []struct{ CaseNumber, Subject, Status, CaseOwner, CaseType, Priority, Email, CreatedAt, Description string }, cursor string) {
	t.Helper()
	raw = s.Body(t, who, http.MethodGet, fmt.Sprintf("/api/support/cases/%d%s", s.DeploymentID, query), "", http.StatusOK)
	var out struct {
		SupportCases []struct{ CaseNumber, Subject, Status, CaseOwner, CaseType, Priority, Email, CreatedAt, Description string }
		Cursor       string
	}
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatal(err)
	}
	return raw, out.SupportCases, out.Cursor
}

// TestSupportCases: users open cases and see their own; administrators see and work all of them.
func TestSupportCases(t *testing.T) {
	t.Parallel()
	eachHelpDesk(t, nil, func(t *testing.T, s *helpDesk) {
		if raw, _, _ := s.list(t, s.ann, ""); raw != `{"supportCases":[],"cursor":""}` {
			t.Errorf("no cases: %s", raw)
		}
		if got := s.open(t, s.ann, " Scans \n fail ", fmt.Sprintf(`,"organizationId":"%d","type":"TYPE_BUG_FIX","priority":"PRIORITY_URGENT"`, s.DeploymentID), http.StatusOK); got != `{}` {
			t.Errorf("opened: %s", got)
		}
		s.open(t, s.bob, "How?", `,"email":"team@acme.test"`, http.StatusOK)
		raw, cases, _ := s.list(t, s.ann, "")
		if len(cases) != 1 {
			t.Fatalf("ann sees %s", raw)
		}
		one := cases[0]
		if one.CaseNumber != "1" || one.Subject != "Scans fail" || one.Status != "open" || one.CaseOwner != "" || one.CaseType != "bug_fix" ||
			one.Priority != "urgent" || one.Email != "ann@acme.test" || one.Description != "It does not work." || !strings.HasSuffix(one.CreatedAt, "Z") {
			t.Errorf("ann sees %+v", one)
		}
		if _, cases, _ := s.list(t, s.bob, ""); len(cases) != 1 || cases[0].CaseNumber != "2" || cases[0].CaseType != "question" || cases[0].Priority != "medium" || cases[0].Email != "team@acme.test" {
			t.Errorf("bob sees %+v", cases)
		}
		_, cases, cursor := s.list(t, s.chief, "?limit=1")
		if len(cases) != 1 || cases[0].CaseNumber != "2" || cursor == "" {
			t.Errorf("the first page is %+v", cases)
		}
		if _, cases, cursor = s.list(t, s.chief, "?limit=1&cursor="+cursor); len(cases) != 1 || cases[0].CaseNumber != "1" || cursor != "" {
			t.Errorf("the second page is %+v, %q", cases, cursor)
		}
		raw, _, _ = s.list(t, s.chief, "")
		listed, err := platformv1.NewSupportServiceClient(s.Conn).ListSupportCases(s.Context(t, s.chief), &platformv1.ListSupportCasesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, listed, raw)

		path := fmt.Sprintf("/api/support/cases/%d/1", s.DeploymentID)
		if got := s.Body(t, s.Token, http.MethodPatch, path, `{"status":"in_progress","caseOwner":"eve@acme.test"}`, http.StatusOK); !strings.Contains(got, `"status":"in_progress"`) || !strings.Contains(got, `"caseOwner":"eve@acme.test"`) {
			t.Errorf("taken: %s", got)
		}
		if got := s.Body(t, s.chief, http.MethodPatch, path, `{"status":"closed"}`, http.StatusOK); !strings.Contains(got, `"status":"closed"`) || !strings.Contains(got, `"caseOwner":"eve@acme.test"`) {
			t.Errorf("closed: %s", got)
		}
		if got := s.Body(t, s.chief, http.MethodPatch, path, `{"removeOwner":true}`, http.StatusOK); !strings.Contains(got, `"caseOwner":""`) {
			t.Errorf("without an owner: %s", got)
		}
		if _, cases, _ := s.list(t, s.ann, ""); cases[0].Status != "closed" {
			t.Errorf("ann sees %+v", cases)
		}
		s.Body(t, s.ann, http.MethodPatch, path, `{"status":"open"}`, http.StatusForbidden)
		s.Body(t, s.chief, http.MethodPatch, path+"7", `{"status":"open"}`, http.StatusNotFound)
		for body, field := range map[string]string{`{"status":"done"}`: "status", `{"caseOwner":"x","removeOwner":true}`: "removeOwner"} {
			if got := s.Body(t, s.chief, http.MethodPatch, path, body, http.StatusBadRequest); !strings.Contains(got, field) {
				t.Errorf("%s: %s", body, got)
			}
		}
	})
}

// TestSupportCasesAtOnce: cases that are opened at once get different numbers, without a gap.
func TestSupportCasesAtOnce(t *testing.T) {
	t.Parallel()
	const n = 20
	eachHelpDesk(t, nil, func(t *testing.T, s *helpDesk) {
		failures, asAnn := make(chan error, n), s.Context(t, s.ann)
		for range n {
			go func() {
				_, err := platformv1.NewSupportServiceClient(s.Conn).CreateSupportCase(asAnn, &platformv1.CreateSupportCaseRequest{
					DeploymentId: s.DeploymentID, Subject: "Scans fail", Description: "text",
				})
				failures <- err
			}()
		}
		for range n {
			if err := apitest.Receive(t, "an answer", failures); err != nil {
				t.Error(err)
			}
		}
		_, cases, _ := s.list(t, s.ann, "")
		for i, c := range cases {
			if c.CaseNumber != strconv.Itoa(n-i) {
				t.Errorf("case %d of the list has the number %s", i, c.CaseNumber)
			}
		}
		if len(cases) != n {
			t.Errorf("%d cases, want %d", len(cases), n)
		}
	})
}

// TestSupportCaseErrors: errors name the field, and tell nothing about other organizations.
func TestSupportCaseErrors(t *testing.T) {
	t.Parallel()
	eachHelpDesk(t, nil, func(t *testing.T, s *helpDesk) {
		for more, field := range map[string]string{
			`,"subject":"  "`:                                      "subject",
			`,"subject":""`:                                        "subject",
			`,"description":""`:                                    "description",
			`,"type":"TYPE_COMPLAINT"`:                             "type",
			`,"priority":"PRIORITY_NEVER"`:                         "priority",
			`,"email":"nobody"`:                                    "email",
			`,"email":"a@b.test\nBcc: x@y"`:                        "email",
			`,"subject":"` + strings.Repeat("x", 256) + `"`:        "subject",
			`,"description":"` + strings.Repeat("x", 10_001) + `"`: "description",
		} {
			if got := s.open(t, s.ann, "Scans fail", more, http.StatusBadRequest); !strings.Contains(got, field) {
				t.Errorf("%.100s: %s", more, got)
			}
		}
		other := s.AddTenant(t, "umbrella")
		foreign := s.open(t, s.ann, "Scans fail", fmt.Sprintf(`,"organizationId":"%d"`, other.DeploymentID), http.StatusNotFound)
		absent := s.open(t, s.ann, "Scans fail", `,"organizationId":"4711"`, http.StatusNotFound)
		if !strings.Contains(foreign, "deployment not found") || !strings.Contains(absent, "deployment not found") {
			t.Errorf("another organization: %s, an absent one: %s", foreign, absent)
		}
		s.Body(t, s.ann, http.MethodGet, fmt.Sprintf("/api/support/cases/%d", other.DeploymentID), "", http.StatusNotFound)
		s.Body(t, s.ann, http.MethodGet, "/api/support/cases/4711", "", http.StatusNotFound)
		if _, cases, _ := s.list(t, s.chief, ""); len(cases) != 0 {
			t.Errorf("there are cases: %+v", cases)
		}
	})
}

// TestSupportCaseLimits: the cases of a user and of a deployment in a day are limited.
func TestSupportCaseLimits(t *testing.T) {
	t.Parallel()
	eachHelpDesk(t, nil, func(t *testing.T, s *helpDesk) {
		number := int64(0)
		addCases := func(n int, userID, at int64) {
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				rows := make([]*ent.SupportCaseCreate, n)
				for i := range rows {
					number++
					rows[i] = tx.SupportCase.Create().SetDeploymentID(s.DeploymentID).SetNumber(number).SetUserID(userID).SetKind("question").SetPriority("low").
						SetSubject("old").SetDescription("old").SetEmail("x@acme.test").SetStatus("open").SetCreatedAt(at).SetUpdatedAt(at)
				}
				return tx.SupportCase.CreateBulk(rows...).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		addCases(500, 900, 1) // long ago
		for range 50 {
			s.open(t, s.ann, "Scans fail", "", http.StatusOK)
		}
		number += 50
		if got := s.open(t, s.ann, "Scans fail", "", http.StatusTooManyRequests); !strings.Contains(got, "try again in") {
			t.Errorf("the 51st case: %s", got)
		}
		s.open(t, s.bob, "Scans fail", "", http.StatusOK)
		number++
		addCases(449, 901, store.Now())
		s.open(t, s.bob, "Scans fail", "", http.StatusTooManyRequests)
		_, err := platformv1.NewSupportServiceClient(s.Conn).CreateSupportCase(s.Context(t, s.bob), &platformv1.CreateSupportCaseRequest{
			DeploymentId: s.DeploymentID, Subject: "s", Description: "d",
		})
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("over gRPC: %v", err)
		}
		if _, cases, cursor := s.list(t, s.chief, ""); len(cases) != 500 || cursor == "" {
			t.Errorf("a page has %d cases", len(cases))
		}
	})
}

// mailServer accepts messages after it has failed some times.
type mailServer struct {
	address string
	mu      sync.Mutex
	fails   int
	mails   []string
}

func newMailServer(t *testing.T, fails int) *mailServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	m := &mailServer{address: listener.Addr().String(), fails: fails}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go m.serve(textproto.NewConn(conn))
		}
	}()
	return m
}

func (m *mailServer) serve(c *textproto.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.PrintfLine("220 mail.test ESMTP")
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(line, " "); strings.ToUpper(verb) {
		case "DATA":
			_ = c.PrintfLine("354 go on")
			lines, err := c.ReadDotLines()
			if err != nil {
				return
			}
			m.mu.Lock()
			failed := m.fails > 0
			m.fails--
			if !failed {
				m.mails = append(m.mails, strings.Join(lines, "\n"))
			}
			m.mu.Unlock()
			if failed {
				_ = c.PrintfLine("451 later")
			} else {
				_ = c.PrintfLine("250 ok")
			}
		case "QUIT":
			_ = c.PrintfLine("221 bye")
			return
		default:
			_ = c.PrintfLine("250 ok")
		}
	}
}

func (m *mailServer) taken() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mails)
}

// TestSupportCasesAreForwarded: to the mailbox and to the webhook, also after failures, and with the same id each time.
func TestSupportCasesAreForwarded(t *testing.T) {
	t.Parallel()
	const secret = "support-secret-0123456789"
	type request struct {
		id, signature, body string
	}
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		requests := make(chan request, 10)
		mails, failures := newMailServer(t, 1), 1
		var mu sync.Mutex
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(bufio.NewReader(r.Body))
			requests <- request{r.Header.Get("webhook-id"), r.Header.Get(channel.SignatureHeader), string(body)}
			mu.Lock()
			defer mu.Unlock()
			if failures > 0 {
				failures--
				w.WriteHeader(http.StatusBadGateway)
			}
		}))
		t.Cleanup(hook.Close)
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.EgressAllow, c.SMTP, c.SMTPFrom = "127.0.0.1", "smtp://"+mails.address, "palisade@acme.test"
			c.SupportEmail, c.SupportWebhook, c.SupportWebhookSecret = "help@acme.test", hook.URL+"/cases", secret
		})
		ann := s.AddUser(t, s.Tenant, "ann@acme.test", access.RoleMember)
		s.Body(t, ann, http.MethodPost, "/api/support/cases", fmt.Sprintf(`{"subject":"Scans fail","description":"Since Monday.","deploymentId":%d}`, s.DeploymentID), http.StatusOK)
		first, second := apitest.Receive(t, "the first request", requests), apitest.Receive(t, "the repeated request", requests)
		if first != second || !strings.HasPrefix(first.id, "support-case-") || first.signature != channel.Signature(secret, []byte(first.body)) {
			t.Errorf("the requests are %+v and %+v", first, second)
		}
		for _, part := range []string{`"event":"support_case"`, `"subject":"Scans fail"`, `"caseNumber":"1"`, `"slug":"acme"`, `"email":"ann@acme.test"`} {
			if !strings.Contains(first.body, part) {
				t.Errorf("the body lacks %s: %s", part, first.body)
			}
		}
		apitest.Eventually(t, "the mail arrives", func() bool { return len(mails.taken()) > 0 })
		mail := mails.taken()[0]
		for _, part := range []string{"Subject: [acme #1] Scans fail", "Reply-To: <ann@acme.test>", "Message-ID: <" + first.id + "@acme.test>", "Since Monday."} {
			if !strings.Contains(mail, part) {
				t.Errorf("the mail lacks %q:\n%s", part, mail)
			}
		}
	})
}
