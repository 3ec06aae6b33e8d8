/* Packed data sets: one file holds all records of a part, in any order that its writer liked, and
 * an index to find them by. ampcc-pack (runtime/pack/) writes them, and so can any other program:
 * numbers are little-endian and without a sign, checksums are CRC-32C (runtime/record/crc32c.h).
 *
 *   header    0  8  "\x89AMPACK\n"
 *             8  4  version: 1
 *            12  4  flags: 1 exact, 2 background (AmprtDataset), 4 the classes have names
 *            16  4  number of records, 1 to 2^31-1
 *            20  4  number of classes, 1 to 2^31-1
 *            24  4  height   of raw pixels, bytes [height, width, channels];
 *            28  4  width    all three are 0 where records are JPEG and PNG files
 *            32  4  channels
 *            36  4  bytes of the note
 *            40  8  bytes of the names
 *            48  8  where the index begins
 *   note     56     text that tells how the file was made
 *   names           one for each class (flag 4; else none), each ended by a byte 0
 *   records         anywhere between the names and the index: `boxes` boxes, each of four floats
 *                   ymin xmin ymax xmax, then the image
 *   index           for each record
 *             0  8  where it begins
 *             8  4  bytes, those of its boxes included, at most 2^28
 *            12  4  number of its boxes
 *            16  4  label, below the number of classes
 *            20  4  checksum of its bytes
 *   trailer   0  4  checksum of header, note and names
 *             4  4  checksum of the index
 *             8  8  bytes of the file, of which these are the last 24
 *            16  8  "\nKCAPMA\x89"
 *
 * Opening checks all but the records, each of which is checked when it is fetched. So no damaged
 * byte is ever trained on: every byte but those between records is under a checksum.
 *
 * Files are read with pread and not mapped into memory. A mapped file makes a signal, SIGBUS, of a
 * disk that fails, a server that is gone and a file that somebody truncates, which would end the
 * training without a word; with pread it is an error with the name of the file. Reading and
 * checking a record of 100 KB that is in memory takes 0.09 ms by pread and 0.07 ms mapped (by
 * zlib's checksum 0.06 ms more); from disk no difference was seen (tests/bench/pack). To decode
 * such a photograph takes 2 ms. */
#ifndef AMPRT_PACK_H
#define AMPRT_PACK_H

#include "runtime/data/data.h"

#define AMPRT_PACK_MAGIC "\211AMPACK\n"
#define AMPRT_PACK_END   "\nKCAPMA\211"

enum {
  AMPRT_PACK_VERSION = 1,
  AMPRT_PACK_HEADER = 56,
  AMPRT_PACK_ENTRY = 24,
  AMPRT_PACK_TRAILER = 24,
  AMPRT_PACK_BOX = 16,
  AMPRT_PACK_RECORD = 1 << 28, /* bytes of a record at most */
  AMPRT_PACK_EXACT = 1,
  AMPRT_PACK_BACKGROUND = 2,
  AMPRT_PACK_NAMES = 4,
};

/* Opens one file as a set, which is zeroed; amprt_dataset_free in any case. */
AmprtStatus amprt_pack_open(const char *path, AmprtDataset *set, AmprtError *error);

/* For a set that amprt_pack_open opened: its note, and the label and size of a record, for which
 * nothing is read. */
const char *amprt_pack_note(const AmprtDataset *set);
int32_t amprt_pack_label(const AmprtDataset *set, int64_t index);
uint32_t amprt_pack_size(const AmprtDataset *set, int64_t index);

#endif
