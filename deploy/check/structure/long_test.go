package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shorteners are the functions that call testing.Short on behalf of a test. The Makefile searches for them by name.
var shorteners = []string{"few", "onEachBroker", "sequential", "withoutDetector"}

// TestLongTestsAreFound: make test-long runs the tests whose own source calls testing.Short or one of shorteners. A
// test that called it through another function would be shortened everywhere.
func TestLongTestsAreFound(t *testing.T) {
	const root = "../../.."
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, filepath.Join(root, "deploy/check")):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !callsShort(f) {
				continue
			}
			found++
			if name := f.Name.Name; !strings.HasPrefix(name, "Test") && !(f.Recv == nil && slices.Contains(shorteners, name)) {
				t.Errorf("%s: %s calls testing.Short for a test, but make test-long does not know it: call it in the test, or "+
					"add the function here and to SHORTENS of the Makefile", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 30 {
		t.Errorf("only %d functions call testing.Short", found)
	}
}

// callsShort reports whether a function calls testing.Short or one of the shorteners.
func callsShort(f *ast.FuncDecl) (calls bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fun := call.Fun.(type) {
		case *ast.SelectorExpr:
			x, ok := fun.X.(*ast.Ident)
			calls = calls || ok && x.Name == "testing" && fun.Sel.Name == "Short"
		case *ast.Ident:
			calls = calls || slices.Contains(shorteners, fun.Name)
		}
		return true
	})
	return calls
}
