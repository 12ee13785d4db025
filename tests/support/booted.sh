# Boots a real systemd in namespaces of its own (unshare -C -m -p -u -i -n -f --mount-proc), with
# one unit. booted.sh UNIT CGROUP: its own directories of units, so that nothing of the machine is
# started, cleaned or set up.
set -e
mount -t tmpfs none /run
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /etc/systemd
mkdir -p /etc/systemd/system /run/units
units=/usr/lib/systemd/system
for name in sysinit basic network-online network multi-user shutdown umount; do
  cp "$units/$name.target" /run/units/
done
mount -t tmpfs none "$units"
cp /run/units/* "$units"
for name in system-generators system-environment-generators system-preset system-shutdown; do
  [ ! -d "/usr/lib/systemd/$name" ] || mount -t tmpfs none "/usr/lib/systemd/$name"
done
for name in passwd group; do
  cp "/etc/$name" "/run/$name"
done
echo 'tpusmi:x:977:977::/nonexistent:/usr/sbin/nologin' >>/run/passwd
echo 'tpusmi:x:977:' >>/run/group
mount --bind /run/passwd /etc/passwd
mount --bind /run/group /etc/group
cp "$1" /etc/systemd/system/tpusmi.service
printf '[Unit]\nWants=tpusmi.service\n' >/etc/systemd/system/test.target
exec env -i container=test PATH="$PATH" /lib/systemd/systemd --system --unit=test.target --show-status=0
