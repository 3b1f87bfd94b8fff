package scans

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/pathignore"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// The polling settings for a scanner's configuration. The server answers at once, so they only satisfy scanners that
// read them.
const (
	configWaitSeconds    = 5
	configTimeoutSeconds = 300
)

// noRules is the document of a scan without rules. Its first key has to be "rules".
const noRules = `{"rules":[]}`

// GetScanConfig returns what a scan should run, by the scanner's own id of its run.
func (s *ScannerProtocol) GetScanConfig(ctx context.Context, r *scansv1.GetScanConfigRequest) (*scansv1.GetScanConfigResponse, error) {
	want, err := s.wantedBy(ctx, r.GetScanRequestId())
	if err != nil {
		return nil, err
	}
	set, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	config, of, err := s.configuration(ctx, want)
	if err != nil {
		return nil, err
	}
	params, err := set.engineParams(want.products, of.ignores)
	if err != nil {
		return nil, err
	}
	return &scansv1.GetScanConfigResponse{
		Status:       "success",
		Polling:      &scansv1.ScanConfigPolling{RecommendedWaitSeconds: configWaitSeconds, SecondsUntilTimeout: configTimeoutSeconds},
		Config:       config,
		EngineParams: params,
	}, nil
}

// wantedBy finds what a scan or dry run requested.
func (s *ScannerProtocol) wantedBy(ctx context.Context, requestID string) (wanted, error) {
	key := s.requestKey(ctx, requestID)
	row, err := s.store.Reader.Scan.Query().Where(scan.UniqueID(key.uniqueID)).Only(ctx)
	if err == nil {
		if ok, err := mayUploadScan(ctx, s.store.Reader, row); err != nil || !ok {
			return wanted{}, cmp.Or(err, apierr.NotFound("scan %s not found", apierr.Quote(requestID)))
		}
		kept, err := scannerOf(row)
		return wantedOf(row, kept), err
	}
	if !ent.IsNotFound(err) {
		return wanted{}, err
	}
	if want, ok := s.dryRuns.Get(key); ok {
		return want, nil
	}
	return wanted{}, apierr.NotFound("scan %s not found", apierr.Quote(requestID))
}

// wantedOf returns what a stored scan should run.
func wantedOf(row *ent.Scan, kept *storev1.ScannerScan) wanted {
	return wanted{
		products: kept.GetProducts(), partial: partialRules(row), cliVersion: kept.GetCliVersion(), project: kept.GetRepository(),
		decided: kept.GetDecidedRules(),
	}
}

func (s *ScannerProtocol) requestKey(ctx context.Context, uniqueID string) requestKey {
	deploymentID, _ := tenant.FromContext(ctx)
	return requestKey{deploymentID, strings.ToLower(strings.TrimSpace(uniqueID))}
}

// scannerOf decodes what is stored about a scan that a scanner opened.
func scannerOf(row *ent.Scan) (*storev1.ScannerScan, error) {
	kept := &storev1.ScannerScan{}
	if row.Scanner == nil {
		return kept, nil
	}
	return kept, proto.Unmarshal(*row.Scanner, kept)
}

// scanned is the project of a scan; nil before the first scan of a project, and for a caller who may not scan it.
type scanned struct {
	*ent.Project
	ignores *pathignore.Matcher
}

// configuration returns the rules and decisions that a scan needs, and its project.
func (s *ScannerProtocol) configuration(ctx context.Context, want wanted) (*scansv1.ScanConfiguration, scanned, error) {
	config := &scansv1.ScanConfiguration{Rules: []byte(noRules)}
	if len(want.products) > 0 {
		if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
			return nil, scanned{}, err
		}
		document, err := ruleset.Select(ctx, s.store.Reader, ruleset.Selection{
			Products: want.products, PartialRuleIDs: want.partial, ClientVersion: want.cliVersion, Project: want.project, BaseURL: s.baseURL,
			Decided: want.decided,
		})
		if err != nil {
			return nil, scanned{}, err
		}
		config.Rules = document.JSON
	}
	of, err := s.scanned(ctx, want.project)
	if err != nil {
		return nil, scanned{}, err
	}
	policy, err := pathignore.Read(ctx, s.store.Reader)
	of.ignores = policy.For(of.Project)
	if err == nil && of.Project != nil {
		config.TriageIgnoredSyntacticIds, config.TriageIgnoredMatchBasedIds, err = s.ignored(ctx, of)
	}
	return config, of, err
}

// ignored returns the ids of findings that a person, or a rule of a person, decided to ignore on any ref. The scanner
// does not fail a build because of them. Provisional decisions of automation do not count (contract facts, section 4).
func (s *ScannerProtocol) ignored(ctx context.Context, of scanned) (syntactic, matchBased []string, err error) {
	rows, err := s.ignoredFindings(of).Select(finding.FieldContent).All(ctx)
	if err != nil {
		return nil, nil, err
	}
	bySyntax, byMatch := map[string]struct{}{}, map[string]struct{}{}
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, nil, err
		}
		bySyntax[content.GetSyntacticId()], byMatch[content.GetMatchBasedId()] = struct{}{}, struct{}{}
	}
	delete(bySyntax, "")
	delete(byMatch, "")
	return slices.Sorted(maps.Keys(bySyntax)), slices.Sorted(maps.Keys(byMatch)), nil
}

// scanned returns a project that a scan names.
func (s *ScannerProtocol) scanned(ctx context.Context, projectName string) (scanned, error) {
	if projectName == "" {
		return scanned{}, nil
	}
	of, err := s.store.Reader.Project.Query().Where(byname.Is(ctx, projectName)).Only(ctx)
	if ent.IsNotFound(err) {
		return scanned{}, nil
	}
	if err != nil {
		return scanned{}, err
	}
	if ok, err := mayUpload(ctx, s.store.Reader, of); err != nil || !ok {
		return scanned{}, err
	}
	return scanned{Project: of}, nil
}

// ignoredFindings queries the ignored findings of a project.
func (s *ScannerProtocol) ignoredFindings(of scanned) *ent.FindingQuery {
	// A decision to ignore always has a reason, and the index of decisions has only rows with a reason.
	return s.store.Reader.Finding.Query().
		Where(finding.ProjectID(of.ID), finding.TriageState(lifecycle.Ignored), finding.TriageReasonNotNil(), finding.MergedIntoIsNil())
}

// GetLegacyScanConfig returns the rules for editors and older scanners.
func (s *ScannerProtocol) GetLegacyScanConfig(ctx context.Context, r *scansv1.GetLegacyScanConfigRequest) (*scansv1.GetLegacyScanConfigResponse, error) {
	set, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	var requested []string
	for _, p := range []struct {
		word  string
		asked bool
	}{{vocabulary.SAST, r.GetIsCodeScan()}, {vocabulary.SCA, r.GetSca()}, {vocabulary.Secrets, r.GetIsSecretsScan()}} {
		if p.asked {
			requested = append(requested, p.word)
		}
	}
	want := wanted{products: set.enabled(requested), cliVersion: r.GetSemgrepVersion(), project: r.GetRepoName()}
	config, of, err := s.configuration(ctx, want)
	if err != nil {
		return nil, err
	}
	return &scansv1.GetLegacyScanConfigResponse{
		DeploymentId: set.row.ID, DeploymentName: set.row.Name, RuleConfig: string(config.GetRules()),
		Autofix:                    set.autofix(),
		TriageIgnoredSyntacticIds:  config.GetTriageIgnoredSyntacticIds(),
		TriageIgnoredMatchBasedIds: config.GetTriageIgnoredMatchBasedIds(),
		IgnoredFiles:               of.ignores.SkippedByAll(want.products),
		EnabledProducts:            want.products,
	}, nil
}
