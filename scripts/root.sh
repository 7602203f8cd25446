# For scripts that source it and have say and stop: what they do as root.

# Runs a shell command as root: directly, or with sudo where that needs no password; else says what to type, after the
# reason and WITHOUT_ROOT.
as_root() {
    local reason=$1 command=$2
    if [[ $(id -u) == 0 ]]; then
        say "$reason: $command"
        sh -c "$command"
    elif sudo -n true >/dev/null 2>&1; then
        say "$reason: sudo $command"
        sudo -n sh -c "$command"
    elif command -v sudo >/dev/null; then
        stop "$reason, $WITHOUT_ROOT  sudo sh -c '$command'"
    else
        stop "$reason, $WITHOUT_ROOT  su -c '$command'"
    fi
}
