//go:build ignore

package samples

import (
	"archive/tar"
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
)

func unpack(archive *zip.Reader, dir string) {
	for _, file := range archive.File {
		// ruleid: palisade.go.zip-slip
		_ = filepath.Join(dir, file.Name)
	}
	// ok: palisade.go.zip-slip
	_ = filepath.Join(dir, "report.txt")
}

func unpackTar(archive *tar.Reader, dir string) {
	header, _ := archive.Next()
	// ruleid: palisade.go.zip-slip
	os.Create(filepath.Join(dir, header.Name))
}

func unpackBelow(archive *zip.Reader, dir string) {
	for _, file := range archive.File {
		// ok: palisade.go.zip-slip
		target := filepath.Join(dir, file.Name)
		if !strings.HasPrefix(target, filepath.Clean(dir)+string(os.PathSeparator)) {
			continue
		}
		os.Create(target)
	}
}

func unpackLocal(archive *zip.Reader, dir string) {
	for _, file := range archive.File {
		if !filepath.IsLocal(file.Name) {
			continue
		}
		// ok: palisade.go.zip-slip
		os.Create(filepath.Join(dir, file.Name))
	}
}
