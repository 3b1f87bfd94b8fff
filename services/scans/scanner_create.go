package scans

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/rules/ruleset"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/scanner"
)

// partialStat is the key in scans.stats for the rules that a scan was limited to.
const partialStat = "partial_scan_rule_ids"

// maxMetaText limits a text of the CI run in bytes. The title of a commit, for example, is its whole message.
const maxMetaText = 2048

// CreateScan opens a scan and returns what to run.
func (s *ScannerProtocol) CreateScan(ctx context.Context, r *scansv1.CreateScanRequest) (*scansv1.CreateScanResponse, error) {
	set, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	info, want, err := s.open(ctx, set, r)
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
	return &scansv1.CreateScanResponse{Info: info, Config: config, EngineParams: params}, nil
}

// CreateScanV2 opens a scan. GetScanConfig returns what to run.
func (s *ScannerProtocol) CreateScanV2(ctx context.Context, r *scansv1.CreateScanV2Request) (*scansv1.CreateScanV2Response, error) {
	set, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	info, want, err := s.open(ctx, set, r)
	if err != nil {
		return nil, err
	}
	if info.Id == nil {
		s.dryRuns.Add(s.requestKey(ctx, r.GetScanMetadata().GetUniqueId()), want)
	}
	return &scansv1.CreateScanV2Response{Info: info}, nil
}

// scanRequest is the common part of both forms of the protocol.
type scanRequest interface {
	GetProjectMetadata() *scansv1.ScanProjectMetadata
	GetScanMetadata() *scansv1.ScanMetadata
	GetProjectConfig() *scansv1.ScanProjectConfig
}

// open stores a scan, unless it is stored already or is a dry run.
func (s *ScannerProtocol) open(ctx context.Context, set settings, r scanRequest) (*scansv1.ScanInfo, wanted, error) {
	about := r.GetScanMetadata()
	if err := checkRef("branch", r.GetProjectMetadata().GetBranch(), scannedRef(r.GetProjectMetadata())); err != nil {
		return nil, wanted{}, err
	}
	want := wanted{
		products: set.enabled(about.GetRequestedProducts()), partial: about.GetPartialScanRuleIds(), cliVersion: about.GetCliVersion(),
		project: projectName(r.GetProjectMetadata()),
	}
	if want.cliVersion == "" {
		want.cliVersion = r.GetProjectMetadata().GetSemgrepVersion()
	}
	name, err := followRepository(ctx, s.store.Reader, r.GetProjectMetadata(), want.project)
	if err != nil {
		return nil, want, err
	}
	want.project = name
	if about.GetDryRun() || want.project == "" {
		return set.info(0, want.products), want, nil
	}
	opened, err := s.openedBefore(ctx, r)
	if opened == nil && err == nil {
		opened, err = s.storeScan(ctx, set, r, want)
	}
	if err != nil {
		return nil, want, err
	}
	// A retry may come after the settings of the deployment have changed. The settings at the first request count.
	kept, err := scannerOf(opened)
	if err != nil {
		return nil, want, err
	}
	want = wantedOf(opened, kept)
	return set.info(opened.ID, want.products), want, nil
}

// openedBefore finds the scan of an earlier, equal request; nil if there is none.
func (s *ScannerProtocol) openedBefore(ctx context.Context, r scanRequest) (*ent.Scan, error) {
	key := s.requestKey(ctx, r.GetScanMetadata().GetUniqueId())
	if key.uniqueID == "" {
		return nil, nil
	}
	row, err := s.store.Reader.Scan.Query().Where(scan.UniqueID(key.uniqueID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if ok, err := mayUploadScan(ctx, s.store.Reader, row); err != nil || !ok {
		return nil, cmp.Or(err, apierr.PermissionDenied("the unique_id is that of a scan of another caller: send a new one"))
	}
	return row, nil
}

// storeScan stores a scan with its project. If a concurrent call with the same id has just stored it, it returns that
// scan.
func (s *ScannerProtocol) storeScan(ctx context.Context, set settings, r scanRequest, want wanted) (opened *ent.Scan, err error) {
	key := s.requestKey(ctx, r.GetScanMetadata().GetUniqueId())
	if key.uniqueID == "" {
		key.uniqueID = uuid.NewString() // an older scanner: its retries look like new scans
	}
	kept := &storev1.ScannerScan{
		CliVersion: want.cliVersion, Products: want.products, TaskId: uuid.NewString(), Repository: want.project,
		Tags: tagNames(r), MergeBase: mergeBase(r.GetProjectMetadata()),
	}
	if kept.QuarantinedRules, err = ruleset.Quarantined(ctx, s.store.Reader); err != nil {
		return nil, err
	}
	if kept.DecidedRules, err = s.decidedRules(ctx, want.project); err != nil {
		return nil, err
	}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.scanProject(ctx, tx, r, want.project)
		if err != nil {
			return err
		}
		create, err := newScan(tx, r, row, kept)
		if err != nil {
			return err
		}
		err = create.SetDeploymentID(key.deploymentID).SetUniqueID(key.uniqueID).
			OnConflictColumns(scan.FieldDeploymentID, scan.FieldUniqueID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
		if opened, err = tx.Scan.Query().Where(scan.UniqueID(key.uniqueID)).Only(ctx); err != nil {
			return err
		}
		stored, err := scannerOf(opened)
		if err != nil || stored.GetTaskId() != kept.GetTaskId() {
			return err // a concurrent call stored it first
		}
		if fullScan(r) {
			if err := replaceScannedTags(ctx, tx, row.ID, kept.GetTags()); err != nil {
				return err
			}
		}
		audit.Change(ctx, "scan", opened.ID, nil, set.info(opened.ID, want.products))
		return nil
	})
	return opened, err
}

// newScan builds the row of a running scan.
func newScan(tx *ent.Tx, r scanRequest, of *ent.Project, kept *storev1.ScannerScan) (*ent.ScanCreate, error) {
	about := r.GetProjectMetadata()
	meta, err := proto.Marshal(scanMeta(about, of, refIn(of, r)))
	if err != nil {
		return nil, err
	}
	encoded, err := proto.Marshal(kept)
	if err != nil {
		return nil, err
	}
	products := int32(0)
	for _, product := range kept.GetProducts() {
		products |= ingest.ProductBit(product)
	}
	stats, now := map[string]any{}, store.Now()
	if partial := r.GetScanMetadata().GetPartialScanRuleIds(); len(partial) > 0 {
		stats[partialStat] = partial
	}
	ref := refIn(of, r)
	return tx.Scan.Create().SetProjectID(of.ID).SetRef(ref).SetNillablePullRequest(numberOf(ref, about.GetPullRequestId())).SetCommit(about.GetCommit()).
		SetStatus(scansv1.ScanStatus_SCAN_STATUS_RUNNING.String()).SetProducts(products).SetIsFullScan(fullScan(r)).
		SetScanner(encoded).SetMeta(meta).SetStats(stats).SetStartedAt(now).
		SetNillableCommitTime(commitTime(scanner.CommitTime(about.GetCommitTimestamp()), now)), nil
}

// commitTime is the stored time of a commit; nil if it is unknown. A commit is not newer than its scan, so an error of
// the clock or the time zone of a machine counts only until the scan.
func commitTime(at time.Time, started int64) *int64 {
	if at.Unix() <= 0 {
		return nil
	}
	micros := min(store.Micros(at), started)
	return &micros
}

// scanMeta converts the facts of the CI run to the API's form.
func scanMeta(m *scansv1.ScanProjectMetadata, of *ent.Project, ref string) *scansv1.ScanMeta {
	cut := func(s string) string {
		if len(s) > maxMetaText {
			s = strings.ToValidUTF8(s[:maxMetaText], "")
		}
		return strings.ReplaceAll(s, "\x00", "")
	}
	repoURL := webURL(m.GetRepoUrl())
	if repoURL == "" {
		repoURL = of.URL
	}
	return &scansv1.ScanMeta{
		On: cut(m.GetOn()), Branch: ref, Commit: m.GetCommit(), RepoUrl: repoURL, CiJobUrl: webURL(cut(m.GetCiJobUrl())),
		Repository: m.GetRepository(), CommitTitle: cut(m.GetCommitTitle()), PullRequestId: cut(m.GetPullRequestId()),
		PullRequestTitle: cut(m.GetPullRequestTitle()), CommitAuthorName: cut(m.GetCommitAuthorName()),
		CommitAuthorImageUrl: webURL(cut(m.GetCommitAuthorImageUrl())), CommitAuthorEmail: cut(m.GetCommitAuthorEmail()),
		CommitAuthorUsername: cut(m.GetCommitAuthorUsername()), PullRequestAuthorUsername: cut(m.GetPullRequestAuthorUsername()),
		PullRequestAuthorImageUrl: webURL(cut(m.GetPullRequestAuthorImageUrl())),
	}
}

// scannedRef is the full ref that was scanned. Without a branch it is the ref of the pull request, as GitHub names it.
// Without a pull request it is the ref of the commit.
func scannedRef(m *scansv1.ScanProjectMetadata) string {
	branch, pull := m.GetBranch(), m.GetPullRequestId()
	if (branch == "" || gitref.IsHead(branch)) && pull != "" && strings.Trim(pull, "0123456789") == "" {
		return pullRequestRef(pull)
	}
	return gitref.Scanned(branch, m.GetCommit())
}

func pullRequestRef(number string) string { return "refs/pull/" + number + "/merge" }

// refIn is the scanned ref in a project. A pull request may come from the default branch of a fork, and some CI systems
// send the name of that branch. It is not the branch of the project.
func refIn(of *ent.Project, r scanRequest) string {
	ref, pull := scannedRef(r.GetProjectMetadata()), pullRequestRef(r.GetProjectMetadata().GetPullRequestId())
	if !fullScan(r) && (ref == of.DefaultBranch || ref == of.PrimaryBranch) && gitref.PullRequest(pull) != 0 {
		return pull
	}
	return ref
}

// mergeBase is the commit that a diff scan compares with, from any of the fields that scanners use.
func mergeBase(m *scansv1.ScanProjectMetadata) string {
	for _, commit := range []string{m.GetStartSha(), m.GetBaseSha(), m.GetBaseBranchHeadCommit()} {
		if commit != "" && len(commit) <= 64 {
			return commit
		}
	}
	return ""
}

func fullScan(r scanRequest) bool {
	m := r.GetProjectMetadata()
	return m == nil || m.IsFullScan == nil || m.GetIsFullScan()
}

// projectName is the name of the project: the display name if there is one, so that directories of a repository can be
// separate projects.
func projectName(m *scansv1.ScanProjectMetadata) string {
	if m.GetRepository() == "" {
		return "" // only the configuration is requested
	}
	if m.GetRepoDisplayName() != "" {
		return m.GetRepoDisplayName()
	}
	return m.GetRepository()
}

// tagNames returns the tags of the configuration file without duplicates.
func tagNames(r scanRequest) []string {
	names := map[string]struct{}{}
	for _, name := range r.GetProjectConfig().GetTags() {
		if name = strings.TrimSpace(strings.ReplaceAll(name, "\x00", "")); name != "" {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// partialRules returns the rules that a scan was limited to; none means all.
func partialRules(row *ent.Scan) (names []string) {
	list, _ := row.Stats[partialStat].([]any)
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
