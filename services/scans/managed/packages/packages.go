// Package packages finds vulnerable packages in the lockfiles of code, by the advisories that the deployment imported.
package packages

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/supplychain/lockfiles"
)

// Tool is the name of the engine in scans and findings.
const Tool = "palisade-dependencies"

// MaxFile is the size of the largest lockfile that is read, in bytes. Findings and dependencies in larger ones stay as
// they are.
const MaxFile = lockfiles.MaxFile

// Place is a package in a lockfile.
type Place struct {
	Lockfile string
	lockfiles.Package
}

// Counts says what a search saw.
type Counts struct{ Lockfiles, Unread, Packages, Vulnerabilities int }

// Read starts a run of the engine, and writes the packages in the lockfiles of a checkout as its dependencies.
func Read(ctx context.Context, c *clone.Checkout, w *formats.Writer) (found []Place, n Counts, err error) {
	Begin(w)
	err = c.Files(ctx, func(f clone.File) error {
		if !lockfiles.Known(f.Path) || strings.Contains("/"+f.Path, "/node_modules/") {
			return nil
		}
		some, err := read(ctx, c, f, w)
		if err != nil {
			return err
		}
		if some == nil {
			n.Unread++
			return nil
		}
		n.Lockfiles, n.Packages = n.Lockfiles+1, n.Packages+len(some)
		for _, p := range some {
			found = append(found, Place{f.Path, p})
			err := w.Dependency(formats.Dependency{
				Lockfile: f.Path, Line: p.Line, Ecosystem: p.Ecosystem, Name: p.Name, Version: p.Version, Transitivity: p.Transitivity, Children: p.Children,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, n, err
}

// Begin starts a run of the engine.
func Begin(w *formats.Writer) { w.Run(formats.Tool{Name: Tool, Product: formats.ProductSCA}) }

// read returns the packages of a lockfile; nil if it could not be read, which the report says.
func read(ctx context.Context, c *clone.Checkout, f clone.File, w *formats.Writer) ([]lockfiles.Package, error) {
	if f.Size < 0 || f.Size > MaxFile {
		w.Failed(f.Path, fmt.Sprintf("it is larger than %d MiB", MaxFile>>20))
		return nil, nil
	}
	content, err := f.Content(ctx)
	if err != nil {
		return nil, err
	}
	var failed error
	found, err := lockfiles.Read(f.Path, content, func(name string) (text []byte) {
		if failed == nil {
			text, failed = beside(ctx, c, path.Join(path.Dir(f.Path), name))
		}
		return text
	})
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		w.Failed(f.Path, err.Error())
		return nil, nil
	}
	return append([]lockfiles.Package{}, found...), nil
}

// beside reads a manifest; nil if there is none, or if it is too large to be one.
func beside(ctx context.Context, c *clone.Checkout, path string) ([]byte, error) {
	f, found, err := c.Find(ctx, path)
	if err != nil || !found || f.Size < 0 || f.Size > MaxFile {
		return nil, err
	}
	return f.Content(ctx)
}
