// Command witness is all that the containers of the tests' real nodes run.
//
//	witness pause               what holds a pod's namespaces together
//	witness show [-exit N] PATH...   one JSON line on what a container got, then wait for SIGTERM
//
// The line is {"env": {NAME: VALUE}, "paths": {PATH: {...}}}; a path is described by its kind
// (device, file, directory, absent), by the numbers of a device, the text of a file, the names in a
// directory, and by whether it can be opened for writing. With -exit it ends at once instead of
// waiting.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const mostText = 4096 // bytes of a file that are told

type seen struct {
	Kind     string   `json:"kind"`
	Major    uint64   `json:"major,omitempty"`
	Minor    uint64   `json:"minor,omitempty"`
	Text     string   `json:"text,omitempty"`
	Entries  []string `json:"entries,omitempty"`
	Writable bool     `json:"writable"`
}

type report struct {
	Env   map[string]string `json:"env"`
	Paths map[string]seen   `json:"paths"`
}

func main() {
	if len(os.Args) < 2 || (os.Args[1] != "pause" && os.Args[1] != "show") {
		fmt.Fprintln(os.Stderr, "usage: witness pause | witness show [-exit N] PATH...")
		os.Exit(2)
	}
	// Asked for before anything is told: whoever reads the line may end us at once.
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	if os.Args[1] == "show" {
		show(os.Args[2:])
	}
	<-end
}

func show(arguments []string) {
	flags := flag.NewFlagSet("show", flag.ExitOnError)
	code := flags.Int("exit", -1, "end with this code at once")
	_ = flags.Parse(arguments) // ExitOnError
	told := report{Env: environment(), Paths: map[string]seen{}}
	for _, path := range flags.Args() {
		told.Paths[path] = look(path)
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *code >= 0 {
		os.Exit(*code)
	}
}

func environment() map[string]string {
	all := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

func look(path string) seen {
	info, err := os.Stat(path)
	if err != nil {
		return seen{Kind: "absent"}
	}
	switch {
	case info.IsDir():
		return directory(path)
	case info.Mode()&os.ModeDevice != 0:
		return device(path, info)
	}
	text, _ := os.ReadFile(path)
	if len(text) > mostText {
		text = text[:mostText]
	}
	return seen{Kind: "file", Text: string(text), Writable: writable(path)}
}

func directory(path string) seen {
	found := seen{Kind: "directory", Writable: syscall.Access(path, 2) == nil} // W_OK
	entries, _ := os.ReadDir(path)
	for _, entry := range entries {
		found.Entries = append(found.Entries, entry.Name())
	}
	return found
}

// device tells the numbers of a device node, as makedev(3) packs them on Linux.
func device(path string, info os.FileInfo) seen {
	number := uint64(info.Sys().(*syscall.Stat_t).Rdev)
	return seen{
		Kind:     "device",
		Major:    (number>>8)&0xfff | (number>>32)&^0xfff,
		Minor:    number&0xff | (number>>12)&^0xff,
		Writable: writable(path),
	}
}

// writable opens the file: the cgroup's device rules count, too, which access(2) does not ask.
func writable(path string) bool {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	return file.Close() == nil
}
