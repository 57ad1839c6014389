//go:build linux

// Package netns has a laptop, a router and a server in network namespaces of their
// own, with the real binary on each, and looks at what programs on the laptop see:
// names, addresses, and a machine that is as before when the tunneler is gone.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

const (
	// inside says that this process has namespaces of its own, and where the binary is.
	inside = "NETKEEP_TEST_INSIDE"
	// role is what this process does in the place of a test.
	role = "NETKEEP_TEST_ROLE"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(role) != "":
		os.Exit(play(os.Getenv(role), os.Args[1:]))
	case os.Getenv(inside) != "":
		if err := apart(); err != nil {
			notRun(err)
		}
		os.Exit(m.Run())
	}
	os.Exit(outside())
}

// notRun says that nothing was shown.
func notRun(why error) {
	fmt.Printf("*** make devices: NOT RUN. Network namespaces cannot be made here: %v.\n", why)
	fmt.Println("*** Nothing was shown about names and addresses on devices.")
	os.Exit(0)
}

// outside builds the program and goes on in namespaces of its own.
func outside() int {
	for _, tool := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			notRun(err)
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		notRun(err)
	}
	dir, err := os.MkdirTemp("", "nk")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "netkeep")
	build := exec.Command("go", "build", "-trimpath", "-o", dir, "../../cmd/netkeep", "../paste")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("%v: %v\n%s", build, err, out)
		return 1
	}
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), inside+"="+binary)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.SysProcAttr = unshared()
	// What it starts ends with it, and it with this one, whatever becomes of them.
	again.SysProcAttr.Cloneflags |= syscall.CLONE_NEWPID
	again.SysProcAttr.Pdeathsig = syscall.SIGKILL
	runtime.LockOSThread() // which it is the child of
	switch err := again.Run(); {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL):
		notRun(err)
	case err != nil:
		return 1
	}
	return 0
}

// unshared is for a process with a network and mounts of its own, as its own root if
// this one is nobody's.
func unshared() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// apart keeps what is mounted here from everybody else, and has nothing of the
// machine's services.
func apart() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	return syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755")
}
