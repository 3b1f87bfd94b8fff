package scans

import "fmt"

// olderWarning says that a report is about an older commit than an earlier scan; empty if there is no such scan.
func olderWarning(newer int64, superseded int) string {
	if newer == 0 {
		return ""
	}
	return fmt.Sprintf("the commit of this report is older than that of scan %d: it closes and reopens nothing, and %d of its findings, which scan %[1]d "+
		"no longer has, are stored as fixed", newer, superseded)
}
