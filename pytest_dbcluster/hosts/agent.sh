leader=$(command -v setsid)
short() {
    lines=
    while words= && IFS= read -r words; do
        lines="${lines}line $1 $2 $words
"
        [ "${#lines}" -le 1000 ] || return 1
    done <"$3"
    [ -z "$words" ] || lines="${lines}tail $1 $2 $words
"
    [ "${#lines}" -le 1000 ] && printf %s "$lines"
}
tell() {
    said_out=$2.out said_err=$2.err
    for part in out err; do
        [ -s "$2.$part" ] || continue
        [ -n "$3" ] && short "$1" "$part" "$2.$part" && continue
        base64 -w 3000 "$2.$part" | {
            lines=0
            while IFS= read -r words; do
                lines=$((lines + 1))
                [ "$lines" -le 22 ] || { echo "wrote $1 $part"; exit 1; }
                echo "said $1 $part $words"
            done
        } || eval "said_$part=\$2.in"  # it stays
    done
}
while IFS= read -r line; do
    set -- $line
    case $1 in
    hello)
        printf '\nready\n'  # a login shell may have printed a line without an end
        ;;
    beat)
        echo "$2" >"$beat"
        ;;
    begin)
        script= left=$3
        while [ "$left" -gt 0 ] && IFS= read -r line; do
            script="$script$line
"
            left=$((left - 1))
        done
        (
            ( eval "$script" ) </dev/null &
            pid=$!
            echo "began $2 $pid"
            wait "$pid"
            status=$?
            [ -z "$4" ] || tell "$2" "$4" "$5"
            echo "ended $2 $status"
            [ -z "$4" ] || rm -f "$4.in" "$said_out" "$said_err"
        ) &
        ;;
    signal)
        kill -s "$2" -- "-$3" 2>/dev/null || kill -s "$2" "$3" 2>/dev/null
        echo signalled
        ;;
    use)
        use "$2"
        ;;
    test)
        eval "${line#test * }"
        echo "ended $2 $?"
        ;;
    stay)
        stay
        echo stays
        ;;
    look)
        cat /proc/stat /sys/block/vda/stat /proc/net/dev >"$figures" 2>/dev/null
        echo "looked $2"
        ;;
    fall)
        # All processes except the first one of the host, which is this shell; another shell says what to do instead.
        eval "${fall:-kill -s KILL -- -1}"
        wait
        echo fell
        ;;
    esac
done
