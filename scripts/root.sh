# Runs commands as root, for scripts that source this file and define say, stop and WITHOUT_ROOT.

# Runs a shell command as root: directly, or with sudo if sudo needs no password. Otherwise it stops and prints the
# reason, WITHOUT_ROOT and the command to type.
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
