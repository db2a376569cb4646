# One daemon of Corosync beside others on one machine: `sh corosync.sh FOLDER NAME`, in namespaces of its
# own for mounts and for the host's name (by which it finds itself in the list of nodes). Its names are
# fixed, so they are made to lead into FOLDER; none of it is visible to anybody else, and all of it is
# gone with the last process in here.
set -e
folder=$1
hostname "$2"
# Sockets in files, of which everyone can have their own, instead of names that a network has once.
mkdir -p "$folder/etc/libqb" "$folder/run" "$folder/tmp" "$folder/shm" "$folder/lib"
touch "$folder/etc/libqb/force-filesystem-sockets"
mkfifo "$folder/go"
exec 3>"$folder/ready" 4<>"$folder/go"
mount -t overlay -o "lowerdir=$folder/etc:/etc" none /etc
mount --bind "$folder/lib" /var/lib/corosync
mount --bind "$folder/run" /run
mount --bind "$folder/tmp" /tmp
mount --bind "$folder/shm" /dev/shm
# Time is taken from here on.
echo ready >&3
read -r _ <&4
exec 3>&- 4>&-
exec corosync -f
