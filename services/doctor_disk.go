package services

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"

	"github.com/palisade/palisade/services/config"
)

// checkDisk checks that the disk has room for uploads. If the data directory does not exist yet, its parent counts.
func checkDisk(cfg config.Config) Check {
	const name = "disk"
	disk := cfg.Disk()
	for i, dir := range disk.Dirs {
		for {
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
				break
			}
			dir = filepath.Dir(dir)
		}
		disk.Dirs[i] = dir
	}
	free, known := disk.Free()
	if !known {
		return passed(name, "how much is free where "+cfg.Data+" lies is not known here")
	}
	if problem, _ := disk.State(); problem != "" {
		return failed(name, problem, "make room where "+cfg.Data+" lies, or lower --disk-reserve")
	}
	return passed(name, humanize.IBytes(uint64(free))+" are free where "+cfg.Data+" lies")
}
