package lockfiles

import (
	"context"
	"log"
	"log/slog"

	"github.com/aquasecurity/trivy/pkg/dependency/parser/dart/pub"
	gradle "github.com/aquasecurity/trivy/pkg/dependency/parser/gradle/lockfile"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/hex/mix"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/nodejs/pnpm"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/nodejs/yarn"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/python/pip"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/python/poetry"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/python/pylock"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/python/uv"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/ruby/bundler"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/rust/cargo"
	"github.com/aquasecurity/trivy/pkg/dependency/parser/swift/cocoapods"
	"github.com/aquasecurity/trivy/pkg/fanal/types"
	xio "github.com/aquasecurity/trivy/pkg/x/io"
)

// parse is the form of most of Trivy's parsers.
type parse func(context.Context, xio.ReadSeekerAt) ([]types.Package, []types.Dependency, error)

// parsers are made once, and have no state but the logger.
var parsers = func() (p struct {
	pnpm, requirements, poetry, uv, pylock, bundler, cargo, gradle, pub, mix, pods parse
	yarn                                                                           *yarn.Parser
}) {
	defer silence()()
	p.yarn = yarn.NewParser()
	p.pnpm, p.requirements, p.poetry, p.uv, p.pylock = pnpm.NewParser().Parse, pip.NewParser(false).Parse, poetry.NewParser().Parse, uv.NewParser().Parse, pylock.NewParser().Parse
	p.bundler, p.cargo, p.gradle, p.pub = bundler.NewParser().Parse, cargo.NewParser().Parse, gradle.NewParser().Parse, pub.NewParser(false).Parse
	p.mix, p.pods = mix.NewParser().Parse, cocoapods.NewParser().Parse
	return p
}()

// silence lets parsers that are made until the returned function is called log nothing: they take the default logger
// when they are made, and would write lines of lockfiles to the standard error.
func silence() (restore func()) {
	logger, out, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return func() {
		slog.SetDefault(logger)
		log.SetOutput(out) // which SetDefault has changed
		log.SetFlags(flags)
	}
}

// convert converts what a parser found. direct reports whether a package is direct; nil leaves that to the parser.
func convert(found []types.Package, edges []types.Dependency, direct func(types.Package) bool) (out []Package) {
	byID := make(map[string]*types.Package, len(found))
	for i := range found {
		byID[found[i].ID] = &found[i]
	}
	children := make(map[string][]string, len(edges))
	for _, edge := range edges {
		for _, id := range edge.DependsOn {
			if p := byID[id]; p != nil {
				children[edge.ID] = append(children[edge.ID], p.Name+"@"+p.Version)
			}
		}
	}
	for _, p := range found {
		if p.Relationship == types.RelationshipRoot || p.Relationship == types.RelationshipWorkspace {
			continue
		}
		one := Package{Name: p.Name, Version: p.Version, Children: children[p.ID]}
		switch {
		case direct != nil:
			one.Transitivity = transitivity(direct(p))
		case p.Relationship != types.RelationshipUnknown:
			one.Transitivity = transitivity(p.Relationship == types.RelationshipDirect)
		}
		if len(p.Locations) > 0 {
			one.Line = p.Locations[0].StartLine
		}
		out = append(out, one)
	}
	return out
}

// by reads a lockfile that tells which packages are direct, or a format in which nothing does.
func by(p parse) func(context.Context, *source) ([]Package, error) {
	return func(ctx context.Context, s *source) ([]Package, error) {
		found, edges, err := p(ctx, s.reader())
		return convert(found, edges, nil), err
	}
}

var pnpmLock, uvLock, pyLock, gradleLock, gemLock, pubLock, mixLock, podLock = by(parsers.pnpm), by(parsers.uv), by(parsers.pylock), by(parsers.gradle),
	by(parsers.bundler), by(parsers.pub), by(parsers.mix), by(parsers.pods)

// requirements reads a list that people or pip-compile wrote: all that is pinned by ==.
func requirements(ctx context.Context, s *source) ([]Package, error) {
	found, _, err := parsers.requirements(ctx, s.reader())
	return convert(found, nil, nil), err
}

// yarnLock reads the lockfiles of all versions of Yarn. The manifest has the ranges of the direct packages.
func yarnLock(ctx context.Context, s *source) ([]Package, error) {
	found, edges, ranges, err := parsers.yarn.Parse(ctx, s.reader())
	if err != nil {
		return nil, err
	}
	manifest := readManifest(s.sibling("package.json"))
	if manifest == nil {
		return convert(found, edges, nil), nil
	}
	return convert(found, edges, func(p types.Package) bool { return manifest.wants(p.Name, ranges[p.ID]) }), nil
}

// poetryLock reads a lockfile whose manifest has the names of the direct packages.
func poetryLock(ctx context.Context, s *source) ([]Package, error) {
	found, edges, err := parsers.poetry(ctx, s.reader())
	if err != nil {
		return nil, err
	}
	direct := readPyproject(s.sibling("pyproject.toml"))
	if direct == nil {
		return convert(found, edges, nil), nil
	}
	return convert(found, edges, func(p types.Package) bool { return direct[pythonName(p.Name)] }), nil
}

// cargoLock reads a lockfile that has the crates of the workspace, too: they have no source, and require the direct
// ones.
func cargoLock(ctx context.Context, s *source) ([]Package, error) {
	found, edges, err := parsers.cargo(ctx, s.reader())
	if err != nil {
		return nil, err
	}
	own, err := ownCrates(s.content)
	if err != nil {
		return nil, err
	}
	direct := map[string]bool{}
	for _, edge := range edges {
		for _, id := range edge.DependsOn {
			direct[id] = direct[id] || own[edge.ID]
		}
	}
	for i := range found {
		if own[found[i].ID] {
			found[i].Relationship = types.RelationshipWorkspace
		}
	}
	return convert(found, edges, func(p types.Package) bool { return direct[p.ID] }), nil
}
