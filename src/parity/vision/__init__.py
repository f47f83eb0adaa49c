"""Vision operations with one stated meaning, on the host and on a GPU.

A handler names no library and no device: images are where the profile says, and each operation is defined by
torch in float32, so that the same line gives the same pixels in a notebook, in a batch job and in a server.
Where OpenCV is there and has shown that it agrees, it does the work; `backends()` tells what does which.
Images keep their own sizes until an operation makes them equal, and what an image becomes never depends on
the images beside it. Values are rounded by `to_u8` and by nothing else.

    images = vision.decode(batch["photo"])
    images = vision.resize(images, (224, 224), interpolation="linear", antialias=True)
    return vision.normalize(images, mean=MEAN, std=STD, layout="NCHW")

docs/reference/vision.md tells what each operation means, and how it compares with Pillow's and OpenCV's.

fastpaths   which library does an operation, and why
images      Images, the pictures of a batch
arguments   checks of what the operations are called with
meanings    the version of what each operation means
decoding    files to pixels
heads       of which kind a file is, and of how many pixels
jpeg_header whether a JPEG is plain enough to be decoded without asking Pillow first
encoding    pixels to files
resampling  resize, to a size or by a side
taps        the weighted sums that resize is
opencv      OpenCV's way of the operations, on the host
cvcuda      CV-CUDA's way of them, on a GPU
curve       the weights of a blur
kept        what is computed once for a size or a setting
geometry    crop, pad, letterbox, flip, rotate by quarters
colour      grey, channels, alpha, scales, normalize, rounding
spaces      hue, saturation and value; luma and colour differences
pointwise   threshold, invert, posterize, equalize
filters     gaussian blur, and scores of sharpness and exposure
windows     mean, least, greatest and middle values around a pixel
warping     rotate by any angle, and by matrices
regions     boxes of pictures, resized
boxes       which boxes to keep, and boxes drawn
ranking     shares of scores, and the largest
plans       operations said once, and computed together
"""

from parity.vision.boxes import draw_boxes, nms
from parity.vision.colour import (
    add_alpha,
    drop_alpha,
    normalize,
    rgb_to_gray,
    swap_channels,
    to_float,
    to_u8,
)
from parity.vision.decoding import ImageError, decode
from parity.vision.encoding import encode_jpeg, encode_png
from parity.vision.fastpaths import Backend, backends
from parity.vision.filters import Exposure, exposure, gaussian_blur, sharpness
from parity.vision.geometry import Placement, center_crop, crop, flip, letterbox, pad, rotate90
from parity.vision.images import Images
from parity.vision.meanings import versions
from parity.vision.plans import Plan, Step, step
from parity.vision.pointwise import equalize, invert, posterize, threshold
from parity.vision.ranking import argmax, softmax, topk
from parity.vision.regions import roi_crop_resize
from parity.vision.resampling import resize, resize_longest, resize_shortest
from parity.vision.spaces import hsv_to_rgb, nv12_to_rgb, rgb_to_hsv, yuv_to_rgb
from parity.vision.warping import rotate, warp_affine, warp_perspective
from parity.vision.windows import box_blur, dilate, erode, laplacian, median_blur

__all__ = [
    "Backend",
    "Exposure",
    "ImageError",
    "Images",
    "Placement",
    "Plan",
    "Step",
    "add_alpha",
    "argmax",
    "backends",
    "box_blur",
    "center_crop",
    "crop",
    "decode",
    "dilate",
    "draw_boxes",
    "drop_alpha",
    "encode_jpeg",
    "encode_png",
    "equalize",
    "erode",
    "exposure",
    "flip",
    "gaussian_blur",
    "hsv_to_rgb",
    "invert",
    "laplacian",
    "letterbox",
    "median_blur",
    "nms",
    "normalize",
    "nv12_to_rgb",
    "pad",
    "posterize",
    "resize",
    "resize_longest",
    "resize_shortest",
    "rgb_to_gray",
    "rgb_to_hsv",
    "roi_crop_resize",
    "rotate",
    "rotate90",
    "sharpness",
    "softmax",
    "step",
    "swap_channels",
    "threshold",
    "to_float",
    "to_u8",
    "topk",
    "versions",
    "warp_affine",
    "warp_perspective",
    "yuv_to_rgb",
]
