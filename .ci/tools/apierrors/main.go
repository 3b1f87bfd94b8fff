// Command apierrors prints which reasons of errors the handler of each RPC can return, one RPC a line. The OpenAPI
// document lists the statuses from it (cmd/protoc-gen-palisade-openapi).
//
// It follows all calls and closures from a handler, through packages of this repository, to the constructors of package
// apierr. Calls through interfaces are not followed. Errors of the interceptors are not listed: they follow from the
// access rule.
package main

import (
	"flag"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

const (
	module      = "github.com/palisade/palisade/"
	reasonType  = module + "gen/palisade/errors/v1.Reason"
	constructor = module + "services/internal/apierr"
	// storePackage is where all writes to the database begin.
	storePackage = module + "services/internal/store"
	storageFull  = "STORAGE_FULL"
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	lines, err := reasonsOf(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		log.Fatal(err)
	}
}

// reasonsOf analyses the repository in a directory.
func reasonsOf(dir string) ([]string, error) {
	config := &packages.Config{Dir: dir, Mode: packages.LoadSyntax | packages.NeedModule}
	loaded, err := packages.Load(config, "./services/...")
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, fmt.Errorf("the packages below services do not compile")
	}
	program, built := ssautil.Packages(loaded, ssa.InstantiateGenerics)
	program.Build()
	var lines []string
	for _, pkg := range built {
		if pkg == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(pkg.Members)) {
			if named, ok := pkg.Members[name].(*ssa.Type); ok {
				lines = append(lines, handlers(program, named.Type())...)
			}
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// handlers describes the RPCs of a type that embeds the generated Unimplemented…Server of a service.
func handlers(program *ssa.Program, of types.Type) (lines []string) {
	structure, ok := of.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for i := range structure.NumFields() {
		field := structure.Field(i)
		service, found := strings.CutPrefix(field.Name(), "Unimplemented")
		if !found || !field.Embedded() || !strings.HasSuffix(service, "ServiceServer") {
			continue
		}
		set := program.MethodSets.MethodSet(types.NewPointer(of))
		own := program.MethodSets.MethodSet(field.Type())
		for j := range set.Len() {
			name := set.At(j).Obj().Name()
			if own.Lookup(field.Pkg(), name) == nil || !set.At(j).Obj().Exported() {
				continue
			}
			walk := walk{seen: map[*ssa.Function]bool{}, reasons: map[string]bool{}}
			walk.from(program.MethodValue(set.At(j)))
			rpc := packageOf(field.Type()) + "." + strings.TrimSuffix(service, "Server") + "." + name
			lines = append(lines, strings.Join(append([]string{rpc}, slices.Sorted(maps.Keys(walk.reasons))...), "\t"))
		}
	}
	return lines
}

// packageOf is the proto package of a generated type: palisade/scans/v1 is palisade.scans.v1.
func packageOf(generated types.Type) string {
	path := generated.(*types.Named).Obj().Pkg().Path()
	return strings.ReplaceAll(strings.TrimPrefix(path, module+"gen/"), "/", ".")
}

// walk collects the reasons that a function can return.
type walk struct {
	seen    map[*ssa.Function]bool
	reasons map[string]bool
}

func (w *walk) from(fn *ssa.Function) {
	if fn == nil || w.seen[fn] {
		return
	}
	w.seen[fn] = true
	if at := fn.Package(); at != nil && at.Pkg.Path() == constructor {
		if fn.Object() != nil && fn.Object().Exported() && returnsError(fn) {
			w.named(fn)
		}
		return
	} else if at != nil && at.Pkg.Path() == storePackage && fn.Name() == "Write" {
		w.reasons[storageFull] = true // every change fails when the disk is full
	}
	for _, block := range fn.Blocks {
		for _, instruction := range block.Instrs {
			for _, operand := range instruction.Operands(nil) {
				called, ok := (*operand).(*ssa.Function)
				if ok && called.Package() != nil && called.Package().Pkg.Path() == constructor && called.Name() == "New" {
					w.named(fn) // the general constructor: the caller names the reason
				}
				if ok {
					w.from(called)
				}
			}
		}
	}
}

func returnsError(fn *ssa.Function) bool {
	results := fn.Signature.Results()
	return results.Len() == 1 && types.Identical(results.At(0).Type(), types.Universe.Lookup("error").Type()) && fn.Name() != "Map"
}

// named adds the reasons that a function names.
func (w *walk) named(fn *ssa.Function) {
	for _, block := range fn.Blocks {
		for _, instruction := range block.Instrs {
			for _, operand := range instruction.Operands(nil) {
				value, ok := (*operand).(*ssa.Const)
				if ok && value.Value != nil && value.Type().String() == reasonType && value.Value.Kind() == constant.Int {
					w.reasons[reasonName(value)] = true
				}
			}
		}
	}
}

// reasonName is the name of a reason without its prefix.
func reasonName(value *ssa.Const) string {
	scope := value.Type().(*types.Named).Obj().Pkg().Scope()
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && types.Identical(c.Type(), value.Type()) && constant.Compare(c.Val(), token.EQL, value.Value) {
			return strings.TrimPrefix(name, "Reason_REASON_")
		}
	}
	return value.Value.String()
}
