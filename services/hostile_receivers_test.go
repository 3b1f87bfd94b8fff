package services_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/egress/egresstest"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/mailserver"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/platform/posture"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/workflows/step"
	"github.com/palisade/palisade/services/workflows/steps"
)

// outboundBudget is the timeout of each outbound call in these tests. Otherwise it is 10 seconds to 10 minutes.
const outboundBudget = time.Second

// outbound is one kind of outbound call.
type outbound struct {
	call func(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error
	// statusDecides: the status alone decides success, regardless of the response body.
	statusDecides bool
	// calls is the maximum number of consecutive calls; 0 is one.
	calls int
	// greeting is what the receiver sends in a protocol other than HTTP.
	greeting string
}

// outboundCalls are all outbound calls of the server except audit anchors, which have their own test. Only the URL of
// package managers is checked.
var outboundCalls = map[string]outbound{
	"webhook":            {call: send(channel.Webhook, map[string]string{"secret": "a-shared-secret-of-ours"}, "url"), statusDecides: true},
	"slack":              {call: send(channel.Slack, map[string]string{}, "url"), statusDecides: true},
	"chat":               {call: send(channel.Chat, map[string]string{"format": "teams"}, "url"), statusDecides: true},
	"s3":                 {call: send(channel.S3, map[string]string{"bucket": "acme-findings", "region": "eu-central-1", "access_key_id": "PALISADETESTKEY", "secret_access_key": "not-a-real-key"}, "endpoint"), statusDecides: true},
	"e-mail":             {call: mail("smtp"), greeting: "220 ready\r\n"},
	"e-mail over TLS":    {call: mail("smtps"), greeting: "220 ready\r\n"},
	"GitHub":             {call: checkHost(scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE), calls: 2},
	"GitLab":             {call: checkHost(scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED), calls: 2},
	"Azure DevOps":       {call: checkHost(scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS), calls: 2},
	"app registration":   {call: registerApp},
	"app sign-in":        {call: signIn},
	"git":                {call: fetch},
	"workflow http step": {call: httpStep},
	"model":              {call: ask, calls: 3},
	"OIDC issuer":        {call: issuerKeys},
	"cloud posture":      {call: postureToken, calls: 2}, // two ways to authenticate
}

func send(kind string, config map[string]string, url string) func(context.Context, *egress.Guard, *egresstest.Receiver) error {
	return func(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
		given := map[string]string{url: r.URL}
		for k, v := range config {
			given[k] = v
		}
		return deliver(ctx, kind, given, guard, mailserver.Config{})
	}
}

func mail(scheme string) func(context.Context, *egress.Guard, *egresstest.Receiver) error {
	return func(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
		server, err := mailserver.Parse(scheme+"://"+r.Address, "palisade@acme.test")
		if err != nil {
			return err
		}
		return deliver(ctx, channel.Email, map[string]string{"to": "ada@acme.test"}, guard, server)
	}
}

func deliver(ctx context.Context, kind string, config map[string]string, guard *egress.Guard, server mailserver.Config) error {
	sender, err := channel.Open(kind, config, guard, server)
	if err != nil {
		return err
	}
	_, err = sender.Send(ctx, channel.Message{Kind: "test", EventID: "evt_1", Payload: []byte("[]"), Subject: "s", Text: "t", At: time.Now()})
	return err
}

func checkHost(kind scmv1.ScmType) func(context.Context, *egress.Guard, *egresstest.Receiver) error {
	return func(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
		h, err := host.Open(kind, r.URL, "token", guard.Client(egress.Limits{MaxRedirects: 3}))
		if err == nil {
			_, err = h.Check(ctx, "acme")
		}
		return err
	}
}

func registerApp(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
	_, err := host.RegisterApp(ctx, scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE, r.URL, "c0de", guard.Client(egress.Limits{MaxRedirects: 3}))
	return err
}

// principalKey is the key of an application of Azure DevOps.
var principalKey = sync.OnceValues(func() (string, error) {
	key, _, err := host.NewPrincipalKey("acme/tools")
	return key, err
})

func signIn(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
	key, err := principalKey()
	if err != nil {
		return err
	}
	_, err = host.Principal{SignIn: r.URL, Tenant: "t", Client: "c", Key: key}.Open(ctx, "https://dev.azure.com", guard.Client(egress.Limits{MaxRedirects: 3}))
	return err
}

func fetch(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
	checkout, err := clone.Fetch(ctx, guard, clone.Source{URL: r.URL + "/acme/web.git"}, "", filepath.Join(os.TempDir(), "hostile-checkouts"), clone.Limits{Refs: 1 << 20, Pack: 1 << 20})
	if err == nil {
		return checkout.Close()
	}
	return err
}

func httpStep(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
	with := map[string]any{"url": r.URL, "method": "POST", "body": strings.Repeat("x", 1<<20)}
	_, err := steps.Registry(steps.Needs{Egress: guard})["http"].Run(ctx, step.Call{With: with})
	return err
}

func ask(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
	_, err := llm.New(llm.Config{URL: r.URL, Model: "m", Timeout: 3 * outboundBudget}, guard).Ask(ctx, llm.Question{Prompt: "?"})
	return err
}

func postureToken(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
	problem, err := posture.Check(ctx, guard, posture.Client{ID: "c", Secret: "s", TokenURL: r.URL, APIURL: r.URL})
	if problem != "" {
		err = errors.New(problem)
	}
	return err
}

func issuerKeys(ctx context.Context, guard *egress.Guard, r *egresstest.Receiver) error {
	o, err := access.NewOIDC(nil, access.OIDCOptions{Issuer: r.URL, Audience: "palisade", Client: guard.Client(egress.Limits{MaxRedirects: 3})})
	if err != nil {
		return err
	}
	return o.Check(ctx)
}

// Each outbound call to any hostile host ends in time, reports the reason, and leaves no connection.
func TestEveryCallerAgainstHostileReceivers(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	egresstest.Shorten(t, outboundBudget)
	for name, caller := range outboundCalls {
		for _, mode := range egresstest.Modes {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				requireBounded(t, caller, mode, egresstest.Start(t, mode, egresstest.Options{Greeting: caller.greeting}))
			})
		}
		if caller.greeting == "" {
			t.Run(name+"/TLS stall", func(t *testing.T) {
				t.Parallel()
				requireBounded(t, caller, egresstest.Silent, egresstest.Start(t, egresstest.Silent, egresstest.Options{TLS: &tls.Config{}}))
			})
		}
	}
}

func requireBounded(t *testing.T, caller outbound, mode egresstest.Mode, r *egresstest.Receiver) {
	t.Helper()
	guard, err := egress.New(egress.Config{Allow: "127.0.0.1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	err = egresstest.Within(t, time.Duration(max(caller.calls, 1))*outboundBudget, func() error { return caller.call(t.Context(), guard, r) })
	inBody := mode == egresstest.SlowBody || mode == egresstest.EndlessBody || mode == egresstest.Reset
	if err == nil && !(inBody && caller.statusDecides) {
		t.Error("a hostile answer was taken for a good one")
	}
	upgrade := mode == egresstest.Upgrade || mode == egresstest.BareUpgrade
	if upgrade && caller.greeting == "" && !strings.Contains(fmt.Sprint(err), fmt.Sprint(http.StatusSwitchingProtocols)) {
		t.Errorf("the error does not say what the host did: %v", err)
	}
	r.RequireClosed(t)
}
