package platform

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/dustin/go-humanize"

	"github.com/palisade/palisade/ent/deployment"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/platform/checks"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// operator is what an administrator of a deployment can do about a problem of the installation.
const operator = "tell the operator of this server, who finds more with: palisade doctor"

// Doctor is the service group "doctor". It shows administrators of a deployment neither paths nor the texts of errors,
// which may name machines.
type Doctor struct {
	platformv1.UnimplementedDoctorServiceServer
	store  *store.Store
	config config.Config
}

// NewDoctor checks the installation that the configuration describes.
func NewDoctor(st *store.Store, cfg config.Config) *Doctor { return &Doctor{store: st, config: cfg} }

// RunDoctor runs the checks.
func (s *Doctor) RunDoctor(ctx context.Context, r *platformv1.RunDoctorRequest) (*platformv1.RunDoctorResponse, error) {
	found, err := s.ofDeployment(ctx, r.GetDeploymentId())
	if err != nil {
		return nil, err
	}
	found = append([]checks.Check{s.clock(ctx), s.disk(), s.address(), s.mail()}, found...)
	if s.config.TLSCert != "" {
		found = append(found, s.certificate())
	}
	if s.config.OIDCIssuer != "" {
		found = append(found, s.issuer(ctx))
	}
	out := &platformv1.RunDoctorResponse{Version: config.BuildVersion().Version}
	for _, c := range found {
		out.Checks = append(out.Checks, &platformv1.DoctorCheck{Name: c.Name, Ok: c.OK, Detail: c.Detail, Fix: c.Fix})
	}
	return out, nil
}

func (s *Doctor) clock(ctx context.Context) checks.Check {
	theirs, err := s.store.Clock(ctx)
	if err != nil {
		return checks.Failed("database", "it does not answer", operator)
	}
	return checks.Clock(theirs)
}

func (s *Doctor) disk() checks.Check {
	const name = "disk"
	disk := s.config.Disk()
	free, known := disk.Free()
	if !known {
		return checks.Passed(name, "how much is free is not known here")
	}
	left := humanize.IBytes(uint64(max(free, 0))) + " are free"
	if problem, _ := disk.State(); problem != "" {
		return checks.Failed(name, left+", less than uploads need", operator)
	}
	return checks.Passed(name, left)
}

// address says which address links and CI jobs use.
func (s *Doctor) address() checks.Check {
	const name = "address"
	if s.config.PublicURL == "" {
		return checks.Passed(name, s.config.BaseURL()+"; before others use it, the operator sets public-url")
	}
	return checks.Passed(name, s.config.BaseURL())
}

func (s *Doctor) mail() checks.Check {
	const name = "e-mail"
	if s.config.SMTP == "" {
		return checks.Passed(name, "off: reports and notifications go by e-mail when the operator sets smtp and smtp-from")
	}
	return checks.Passed(name, "sent as "+s.config.SMTPFrom)
}

func (s *Doctor) certificate() checks.Check {
	const unread = "it cannot be read"
	pair, err := tls.LoadX509KeyPair(s.config.TLSCert, s.config.TLSKey)
	if err != nil {
		return checks.Failed("TLS certificate", unread, operator)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return checks.Failed("TLS certificate", unread, operator)
	}
	return checks.Certificate(leaf, time.Now())
}

// issuer asks the issuer, whose address everybody gets who signs in.
func (s *Doctor) issuer(ctx context.Context) checks.Check {
	const name = "OIDC issuer"
	ctx, cancel := context.WithTimeout(ctx, checks.Timeout)
	defer cancel()
	client, err := server.IssuerClient(s.config, slog.New(slog.DiscardHandler))
	if err == nil {
		_, err = oidc.NewProvider(oidc.ClientContext(ctx, client), s.config.OIDCIssuer)
	}
	if err != nil {
		return checks.Failed(name, s.config.OIDCIssuer+" does not answer as an issuer: nobody can sign in", operator)
	}
	return checks.Passed(name, s.config.OIDCIssuer+" answers")
}

// ofDeployment are the checks of the caller's deployment.
func (s *Doctor) ofDeployment(ctx context.Context, id int64) ([]checks.Check, error) {
	db := s.store.Reader
	names, err := ruleset.Quarantined(ctx, db)
	if err != nil {
		return nil, err
	}
	failing, err := ruleset.ScansFailing(ctx, db)
	if err != nil {
		return nil, err
	}
	row, err := db.Deployment.Query().Where(deployment.ID(id)).Only(ctx)
	if err != nil {
		return nil, err
	}
	found := []checks.Check{
		checks.Passed("rules", "no rule is in quarantine"), checks.Passed("scans", "scans succeed with the present rules"),
		checks.Passed("role of new members", "who joins does not become an administrator"),
	}
	if len(names) > 0 {
		found[0] = checks.Failed("rules", fmt.Sprintf("%d in quarantine, because scanners cannot load them: %s", len(names), first(names)),
			"palisade rules show NAME says why; import a corrected version, or: palisade rules release NAME")
	}
	if failing != nil {
		found[1] = checks.Failed("scans", fmt.Sprintf("all scans fail since the rules changed at %s, the last with exit code %d",
			store.Time(failing.Since).Format("2006-01-02 15:04:05"), failing.LastScan.ExitCode),
			"look at the log of a job; check the rules with palisade rules validate, or leave one out with palisade rules mode off")
	}
	if s.config.OIDCIssuer != "" && row.DefaultRole == string(access.RoleAdmin) {
		found[2] = checks.Failed("role of new members", "everybody who joins through the issuer becomes an administrator",
			"set defaultUserRole to ORG_ROLE_MEMBER (docs/sign-in.md) and review the members who have joined")
	}
	return found, nil
}

// first joins the first names.
func first(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
