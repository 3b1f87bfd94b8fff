package services

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// AuditReport is the result of VerifyAudit for one deployment.
type AuditReport struct {
	// Deployment is the slug, or the id of a deleted deployment.
	Deployment string
	// Entries is the number of valid entries, up to the first broken one. Unchained is the number of older entries,
	// from before the hash chain existed.
	Entries, Unchained int64
	// UnsealedIDs is the number of entries at the end that a server of the previous version has written. Their ids are
	// not protected until the next entry.
	UnsealedIDs int64
	// First and Last are the times of the first and the last valid entry; zero without entries.
	First, Last time.Time
	// Sequence and Hash belong to the last valid entry. Hash is hexadecimal.
	Sequence int64
	Hash     string
	// Since is the time of the origin; zero without an origin. Adopted means that the deployment is older than the
	// origin.
	Since   time.Time
	Adopted bool
	// Anchors is how many known anchors were found in the trail.
	Anchors int
	// Waiting is the number of entries that are in a file beside the store, because the database did not accept them. It
	// belongs to the server and not to a deployment.
	Waiting int
	// Broken describes where and how the trail was tampered with; empty for an intact trail.
	Broken []string
}

// AuditAnchor is an entry that an earlier verification reported. The zero value means none.
type AuditAnchor struct {
	Sequence int64
	Hash     []byte
}

// KnownAudit is what VerifyAudit compares the trails with. If it is empty, VerifyAudit reads the file of the setting
// audit-anchor, if that names one.
type KnownAudit struct {
	// Anchor belongs to the one deployment that is verified.
	Anchor AuditAnchor
	// File contains lines of `palisade audit anchor`.
	File string
}

// VerifyAudit verifies the audit trails of all deployments, or of one. It calls each for every deployment, and progress
// periodically. An error of each ends the verification. It does not disturb a running server.
func VerifyAudit(ctx context.Context, cfg config.Config, slug string, known KnownAudit,
	progress func(deployment string, entries int64), each func(AuditReport) error,
) error {
	return apierr.Plain(withStore(ctx, cfg, func(st *store.Store) error {
		trails, err := auditTrails(ctx, st, slug)
		if err != nil {
			return err
		}
		trail, err := readTrail(ctx, cfg, st)
		if errors.Is(err, audit.ErrNoKey) || errors.Is(err, audit.ErrKey) {
			return withoutKey(ctx, st, trails, err, each)
		}
		if err != nil {
			return err
		}
		if len(trails) == 0 {
			return each(AuditReport{Deployment: "(all)", Broken: []string{"there is no deployment: all were removed, and their trails with them"}})
		}
		anchors, err := readAnchors(cfg, trail, known, trails[0].id)
		if err != nil {
			return err
		}
		for _, d := range trails {
			report, err := verifyOne(ctx, trail, d, anchors, progress)
			if err == nil {
				err = each(report)
			}
			if err != nil {
				return err
			}
		}
		if err := waitingEntries(cfg, each); err != nil || slug != "" {
			return err
		}
		if err := strayRows(ctx, st, each); err != nil {
			return err
		}
		return anchors.missing(trails, each)
	}))
}

// strayRows reports rows of the trails that belong to no deployment.
func strayRows(ctx context.Context, st *store.Store, each func(AuditReport) error) error {
	_, strays, err := audit.Owners(ctx, st)
	if err != nil || strays == 0 {
		return err
	}
	return each(AuditReport{Deployment: "(none)", Broken: []string{
		fmt.Sprintf("%d rows of the trails belong to no deployment: their deployment_id was edited", strays),
	}})
}

// waitingEntries reports entries that wait in a file for the next start of the server, and the number of lost entries,
// which not even the file could take.
func waitingEntries(cfg config.Config, each func(AuditReport) error) error {
	file := server.PendingAuditFile(cfg)
	waiting, err := audit.ReadWaiting(file)
	if err != nil || waiting == (audit.Waiting{}) {
		return err
	}
	report := AuditReport{Deployment: "(this server)", Waiting: waiting.Entries}
	if waiting.Lost > 0 {
		report.Broken = []string{fmt.Sprintf("up to %d entries of refused calls were lost, because neither the database nor %s could be written; "+
			"the next start of the server records that in each trail (audit/lost)", waiting.Lost, file)}
	}
	return each(report)
}

// readTrail opens the audit trail of a store read-only.
func readTrail(ctx context.Context, cfg config.Config, st *store.Store) (*audit.Trail, error) {
	keyring, err := secret.OpenExisting(ctx, st, cfg.KeyPath())
	if err != nil {
		return nil, err
	}
	return audit.Read(ctx, st, keyring, slog.New(slog.DiscardHandler))
}

// withoutKey reports trails that cannot be verified without the key.
func withoutKey(ctx context.Context, st *store.Store, trails []trailOf, cause error, each func(AuditReport) error) error {
	if len(trails) == 0 {
		return fmt.Errorf("the database %s has no deployment: start the server once with these settings (palisade serve). "+
			"If there was one, everything was removed", st.Location())
	}
	for _, d := range trails {
		if err := each(AuditReport{Deployment: d.name, Broken: []string{cause.Error()}}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func verifyOne(ctx context.Context, trail *audit.Trail, d trailOf, anchors *knownAnchors, progress func(string, int64)) (AuditReport, error) {
	found, err := trail.Verify(ctx, d.id, anchors.of[d.id], func(entries int64) { progress(d.name, entries) })
	if err != nil {
		return AuditReport{}, err
	}
	out := AuditReport{
		Deployment: d.name, Entries: found.Entries, Unchained: found.Unchained, UnsealedIDs: found.UnsealedIDs, Anchors: found.Anchors,
		Sequence: found.Sequence, Hash: hex.EncodeToString(found.Hash),
	}
	if found.Entries > 0 {
		out.First, out.Last = store.Time(found.First), store.Time(found.Last)
	}
	if o := found.Origin; o != nil {
		out.Since, out.Adopted = store.Time(o.Since), o.How == audit.OriginAdopted
	}
	for _, b := range found.Broken {
		out.Broken = append(out.Broken, b.Reason)
	}
	if d.removed {
		out.Broken = append(out.Broken, "the deployment itself was removed from the database; its trail is still there")
	}
	out.Broken = append(out.Broken, anchors.forged[d.id]...)
	return out, nil
}

// trailOf is a deployment that has or should have an audit trail.
type trailOf struct {
	id      int64
	name    string
	removed bool // the deployment is deleted, its trail is left
}

// auditTrails lists the deployments that have or should have an audit trail, including deleted ones that left theirs.
func auditTrails(ctx context.Context, st *store.Store, slug string) ([]trailOf, error) {
	if slug != "" {
		one, err := access.NewTokens(st).DeploymentBySlug(ctx, slug)
		if err != nil {
			return nil, err
		}
		return []trailOf{{id: one.ID, name: one.Slug}}, nil
	}
	ctx = tenant.System(ctx)
	rows, err := st.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	var list []trailOf
	known := map[int64]bool{}
	for _, d := range rows {
		known[d.ID] = true
		list = append(list, trailOf{id: d.ID, name: d.Slug})
	}
	owners, _, err := audit.Owners(ctx, st)
	if err != nil {
		return nil, err
	}
	slices.Sort(owners)
	for _, id := range slices.Compact(owners) {
		if !known[id] {
			list = append(list, trailOf{id: id, name: fmt.Sprintf("deployment %d (deleted)", id), removed: true})
		}
	}
	return list, nil
}

// knownAnchors are anchors from outside the database.
type knownAnchors struct {
	file   string
	of     map[int64][]audit.Anchor // by deployment
	names  map[int64]string
	forged map[int64][]string // problems of the anchors themselves
}

// readAnchors reads the known anchors. An anchor without a file belongs to the deployment only.
func readAnchors(cfg config.Config, trail *audit.Trail, known KnownAudit, only int64) (*knownAnchors, error) {
	out := &knownAnchors{file: known.File, of: map[int64][]audit.Anchor{}, names: map[int64]string{}, forged: map[int64][]string{}}
	if known.Anchor.Sequence > 0 {
		out.of[only] = []audit.Anchor{audit.Anchor(known.Anchor)}
		return out, nil
	}
	var optional bool
	if out.file == "" {
		if out.file, optional = cfg.AnchorFile(); !optional {
			return out, nil
		}
	}
	file, err := os.Open(out.file)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return out, nil // no anchor has been written yet
	}
	if err != nil {
		return nil, fmt.Errorf("known anchors: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	if err := out.read(trail, file); err != nil {
		return nil, err
	}
	if !optional && len(out.of) == 0 && len(out.forged) == 0 {
		return nil, fmt.Errorf("known anchors: %s has none, so there is nothing to compare with", out.file)
	}
	return out, nil
}

func (k *knownAnchors) read(trail *audit.Trail, r io.Reader) error {
	err := audit.ParseAnchors(r, func(line int, a audit.ExportedAnchor) error {
		if !trail.Genuine(a) {
			k.forged[a.DeploymentID] = append(k.forged[a.DeploymentID], fmt.Sprintf(
				"line %d of %s was not written by this server: the file was edited, or the key of the trail replaced", line, k.file))
			k.names[a.DeploymentID] = a.Deployment
			return nil
		}
		known, err := a.Known()
		k.of[a.DeploymentID], k.names[a.DeploymentID] = append(k.of[a.DeploymentID], known), a.Deployment
		return err
	})
	if err != nil {
		return fmt.Errorf("known anchors: %s: %w", k.file, err)
	}
	return nil
}

// missing reports known deployments without any trail.
func (k *knownAnchors) missing(trails []trailOf, each func(AuditReport) error) error {
	for _, d := range trails {
		delete(k.names, d.id)
	}
	for _, id := range slices.Sorted(maps.Keys(k.names)) {
		problems := append([]string{fmt.Sprintf("deployment %d is known from %s, but it was removed together with its trail", id, k.file)}, k.forged[id]...)
		if err := each(AuditReport{Deployment: k.names[id], Broken: problems}); err != nil {
			return err
		}
	}
	return nil
}

// BeginAudit creates missing origins, which distinguish an emptied trail from a new one, and the key of the trails if
// it is missing. Each origin gets an audit entry. It returns the slugs of the deployments that got an origin.
func BeginAudit(ctx context.Context, cfg config.Config) (begun []string, err error) {
	err = apierr.Plain(withCurrent(ctx, cfg, func(st *store.Store) error { // there may be no trail yet for operate to write to
		keyring, err := secret.OpenExisting(ctx, st, cfg.KeyPath())
		if err != nil {
			return err
		}
		call, err := operation{method: "audit.begin"}.call()
		if err != nil {
			return err
		}
		ids, err := audit.BeginTrails(ctx, st, keyring, slog.New(slog.DiscardHandler), call)
		if err != nil || len(ids) == 0 {
			return err
		}
		begun, err = st.Reader.Deployment.Query().Where(store.OneOf(deployment.FieldID, ids)).Order(ent.Asc(deployment.FieldID)).
			Select(deployment.FieldSlug).Strings(tenant.System(ctx))
		return err
	}))
	return begun, err
}

// AnchorAudit returns the chain heads of the audit trails of all deployments, or of one, each as a line of NDJSON.
func AnchorAudit(ctx context.Context, cfg config.Config, slug string, each func(line []byte) error) error {
	return apierr.Plain(withStore(ctx, cfg, func(st *store.Store) error {
		trails, err := auditTrails(ctx, st, slug)
		if err != nil {
			return err
		}
		trail, err := readTrail(ctx, cfg, st)
		if err != nil {
			return err
		}
		for _, d := range trails {
			a, err := trail.Anchor(ctx, d.id, d.name)
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			if err := each(a.Line()); err != nil {
				return err
			}
		}
		return nil
	}))
}
